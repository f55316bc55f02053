#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sorot/sorot.h"

/// What the subcommands of `sorot` share: exit codes, failing with one line, reading options, choosing a device.
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

/// Throws unless ok: kInvalidArgument as kBadInput, everything else as kNoDevice, with the Status's message.
void require(const Status& status);

using Arguments = std::vector<std::string>;

/// Parses a subcommand's options. Options that take a value accept `--x V` and `--x=V`, and V may begin with a minus.
/// False if help was asked for (and printed): the command then ends with success.
bool parse(CLI::App& app, const Arguments& arguments);

/// A whole decimal number or a Failure that names the option; `--scale 0.5x` and an empty text are refused.
double parse_double(std::string_view option, const std::string& text);
std::int64_t parse_integer(std::string_view option, const std::string& text);

/// "3,5,-2" -> {3, 5, -2}.
std::vector<std::int64_t> parse_integers(std::string_view option, const std::string& text);

/// The device by name; `auto` takes the best this build has here. Known but absent from this build: kNoDevice.
Context make_context(const std::string& device);

/// Why `auto` takes what it takes, in words.
std::string auto_device_reason();

/// A subcommand runs with the arguments behind its name.
ExitCode run_info(const Arguments& arguments);
ExitCode run_attend(const Arguments& arguments);
ExitCode run_check(const Arguments& arguments);

}  // namespace sorot::tools
