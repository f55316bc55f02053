#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sorot/sorot.h"
#include "tests/support/device.h"
#include "tools/sorot/failure.h"

/// What the subcommands of `sorot` share: failing with one line, reading options, choosing a device.
namespace sorot::tools {

/// Throws unless ok: kInvalidArgument as kBadInput, everything else as kNoDevice, with the Status's message.
void require(const Status& status);

using Arguments = std::vector<std::string>;

/// Parses a subcommand's options: `--x V` or `--x=V`, each at most once, V not empty; it may begin with a minus.
/// False if help was asked for (and printed): the command then ends with success.
bool parse(CLI::App& app, const Arguments& arguments);

/// Writes to standard output. A Failure if that cannot be done, such as a full disk; std::system_error with EPIPE if
/// the reader has gone.
void print(std::string_view text);

/// A whole decimal number or a Failure that names the option; `--scale 0.5x` and an empty text are refused.
double parse_double(std::string_view option, const std::string& text);
std::int64_t parse_integer(std::string_view option, const std::string& text);

/// "3,5,-2" -> {3, 5, -2}.
std::vector<std::int64_t> parse_integers(std::string_view option, const std::string& text);

/// The name of a device of this build; `auto` is the best this build has here. Unknown: kBadInput. Known but absent
/// from this build: kNoDevice.
std::string choose_device(const std::string& name);

/// The device of that name, opened; kNoDevice, with the library's words, if that fails.
support::Device open_device(const std::string& name);

/// Why `auto` takes what it takes, in words.
std::string auto_device_reason();

/// A subcommand runs with the arguments behind its name.
ExitCode run_info(const Arguments& arguments);
ExitCode run_attend(const Arguments& arguments);
ExitCode run_check(const Arguments& arguments);

}  // namespace sorot::tools
