#include "tools/sorot/command.h"

#include <charconv>
#include <iostream>

namespace sorot::tools {
namespace {

template <class Number>
Number parse_number(std::string_view option, const std::string& text, const char* kind) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') ++begin;
  Number value{};
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error == std::errc::result_out_of_range) refuse("{} is '{}', too large or too small for {}", option, text, kind);
  if (error != std::errc() || stop != end) refuse("{} is '{}', expected {}", option, text, kind);
  return value;
}

/// Joins `--x V` into `--x=V` for options that take a value, so that V may begin with a minus.
Arguments join_values(const CLI::App& app, const Arguments& arguments) {
  Arguments joined;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const CLI::Option* option = argument.find('=') == std::string::npos ? app.get_option_no_throw(argument) : nullptr;
    const bool takes_value = option != nullptr && argument.starts_with("--") && option->get_expected_max() > 0;
    if (!takes_value) {
      joined.push_back(argument);
      continue;
    }
    if (i + 1 == arguments.size()) refuse("{} needs a value", argument);
    joined.push_back(argument + "=" + arguments[++i]);
  }
  return joined;
}

}  // namespace

void require(const Status& status) {
  if (status.ok()) return;
  const bool callers_fault = status.code() == StatusCode::kInvalidArgument;
  throw Failure(callers_fault ? ExitCode::kBadInput : ExitCode::kNoDevice, status.message());
}

bool parse(CLI::App& app, const Arguments& arguments) {
  try {
    Arguments joined = join_values(app, arguments);
    std::reverse(joined.begin(), joined.end());  // CLI11 takes them last first
    app.parse(joined);
  } catch (const CLI::Success&) {
    std::cout << app.help();
    return false;
  } catch (const CLI::ParseError& error) {
    refuse("{}", error.what());
  }
  return true;
}

double parse_double(std::string_view option, const std::string& text) {
  return parse_number<double>(option, text, "a number");
}

std::int64_t parse_integer(std::string_view option, const std::string& text) {
  return parse_number<std::int64_t>(option, text, "a whole number");
}

std::vector<std::int64_t> parse_integers(std::string_view option, const std::string& text) {
  std::vector<std::int64_t> values;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    values.push_back(parse_integer(option, text.substr(begin, comma - begin)));
    begin = comma + 1;
  }
  return values;
}

Context make_context(const std::string& device) {
  if (device == "auto" || device == "reference") return Context::reference();
  if (device == "cpu" || device == "cuda") {
    throw Failure(ExitCode::kNoDevice,
                  fmt::format("device {} is not in this build of sorot, which has: reference", device));
  }
  refuse("--device is '{}', expected auto or reference", device);
}

std::string auto_device_reason() { return "auto takes reference: the only device in this build"; }

}  // namespace sorot::tools
