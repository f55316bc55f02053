#include "tools/sorot/command.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <set>
#include <system_error>
#include <vector>

namespace sorot::tools {
namespace {

/// `part` is the number; messages quote all of `text`.
template <class Number>
Number parse_number(std::string_view option, std::string_view text, std::string_view part, const char* kind) {
  const char* begin = part.data();
  const char* end = begin + part.size();
  if (part.size() > 1 && part[0] == '+' && part[1] != '-') ++begin;
  Number value{};
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error == std::errc::result_out_of_range) refuse("{} is '{}', too large or too small for {}", option, text, kind);
  if (error != std::errc() || stop != end) refuse("{} is '{}', expected {}", option, text, kind);
  return value;
}

/// The arguments as `--x` and `--x=V`, each checked here: CLI11 by itself takes V for an option if it begins with a
/// minus, and `--x=` for an option whose value follows.
Arguments normalise(const CLI::App& app, const Arguments& arguments) {
  Arguments normal;
  std::set<const CLI::Option*> seen;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!argument.starts_with("--")) refuse("'{}' is no option (see {} --help)", argument, app.get_name());
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const CLI::Option* option = app.get_option_no_throw(name);
    if (option == nullptr) refuse("'{}' is no option of {} (see {} --help)", name, app.get_name(), app.get_name());
    if (!seen.insert(option).second) refuse("{} is given twice", name);
    const bool takes_value = option->get_expected_max() > 0;
    if (!takes_value) {
      if (equals != std::string::npos) refuse("{} takes no value, but has '{}'", name, argument.substr(equals + 1));
      normal.push_back(name);
      continue;
    }
    const bool joined = equals != std::string::npos;
    if (!joined && i + 1 == arguments.size()) refuse("{} needs a value", name);
    const std::string value = joined ? argument.substr(equals + 1) : arguments[++i];
    if (!joined && app.get_option_no_throw(value) != nullptr) {
      refuse("{} needs a value, but the option {} follows (a file of that name: {}={})", name, value, name, value);
    }
    if (value.empty()) refuse("{} needs a value, but it is empty", name);
    normal.push_back(name + "=" + value);
  }
  return normal;
}

/// Why `auto` does not take CUDA; empty if it does. An emulated device is for those who ask for it.
std::string why_no_gpu() {
  if (!support::kHasCuda) return "the only device in this build";
  if (support::kEmulated) return "cuda is emulated in this build, which is for tests and taken only by name";
  return support::Device::probe("cuda").message();
}

/// True if help is asked for where an option stands; behind `--out` it would be a value.
bool asks_help(const CLI::App& app, const Arguments& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--help" || arguments[i] == "-h") return true;
    const CLI::Option* option = app.get_option_no_throw(arguments[i]);
    if (option != nullptr && option->get_expected_max() > 0) ++i;
  }
  return false;
}

}  // namespace

void require(const Status& status) {
  if (status.ok()) return;
  const bool callers_fault = status.code() == StatusCode::kInvalidArgument;
  throw Failure(callers_fault ? ExitCode::kBadInput : ExitCode::kNoDevice, status.message());
}

bool parse(CLI::App& app, const Arguments& arguments) {
  if (asks_help(app, arguments)) {
    print(app.help());
    return false;
  }
  Arguments normal = normalise(app, arguments);
  std::reverse(normal.begin(), normal.end());  // CLI11 takes them last first
  try {
    app.parse(normal);
  } catch (const CLI::ParseError& error) {
    refuse("{}", error.what());
  }
  return true;
}

void print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  if (errno == EPIPE) throw std::system_error(errno, std::generic_category(), "standard output cannot be written");
  refuse("standard output cannot be written: {}", std::strerror(errno));
}

double parse_double(std::string_view option, const std::string& text) {
  return parse_number<double>(option, text, text, "a number");
}

std::int64_t parse_integer(std::string_view option, const std::string& text) {
  return parse_number<std::int64_t>(option, text, text, "a whole number");
}

std::vector<std::int64_t> parse_integers(std::string_view option, const std::string& text) {
  std::vector<std::int64_t> values;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, comma - begin);
    values.push_back(parse_number<std::int64_t>(option, text, part, "whole numbers"));
    begin = comma + 1;
  }
  return values;
}

std::string choose_device(const std::string& name) {
  if (name == "auto") return why_no_gpu().empty() ? "cuda" : "reference";
  std::vector<std::string> names;
  for (std::size_t d = 0; d < build_info().device_count; ++d) names.emplace_back(build_info().devices[d]->name);
  if (std::find(names.begin(), names.end(), name) != names.end()) return name;
  if (name == "cpu" || name == "cuda") {
    throw Failure(ExitCode::kNoDevice,
                  fmt::format("device {} is not in this build of sorot, which has: {}", name, fmt::join(names, ", ")));
  }
  refuse("--device is '{}', expected auto, reference or cuda", name);
}

support::Device open_device(const std::string& name) {
  if (const Status status = support::Device::probe(name); !status.ok()) {
    throw Failure(ExitCode::kNoDevice, status.message());
  }
  return support::Device(name);
}

std::string auto_device_reason() {
  const std::string reason = why_no_gpu();
  return reason.empty() ? "auto takes cuda: " + support::cuda_model() : "auto takes reference: " + reason;
}

}  // namespace sorot::tools
