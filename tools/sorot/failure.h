#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

/// How a part of the command gives up: exit codes, and an exception that carries one with a line for people.
namespace sorot::tools {

enum class ExitCode : int {
  kSuccess = 0,
  kMismatch = 1,  ///< `check` found a result that differs from the oracle
  kBadInput = 2,  ///< something wrong in files, shapes, dtypes, values or options
  kNoDevice = 3,  ///< no device, or something this device lacks
};

/// Ends a command: main prints `sorot: <what>` as one line on standard error and exits with the code.
class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& message) : std::runtime_error(message), exit_code(code) {}
  ExitCode exit_code;
};

/// Throws a Failure with kBadInput.
template <class... Values>
[[noreturn]] void refuse(fmt::format_string<Values...> format, Values&&... values) {
  throw Failure(ExitCode::kBadInput, fmt::format(format, std::forward<Values>(values)...));
}

}  // namespace sorot::tools
