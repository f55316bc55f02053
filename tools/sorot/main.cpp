#include <cstdio>
#include <exception>

#include "tools/sorot/command.h"

namespace {

constexpr char kHelp[] =
    "Usage: sorot COMMAND [options]\n"
    "\n"
    "  info     what this build is and on which devices it computes\n"
    "  attend   attention over .npy files\n"
    "  check    a device against the double-precision oracle\n"
    "\n"
    "`sorot COMMAND --help` lists a command's options. Exit codes: 0 success, 1 mismatch, 2 bad input, 3 no device.\n";

sorot::tools::ExitCode dispatch(const sorot::tools::Arguments& arguments) {
  using namespace sorot::tools;
  if (arguments.empty()) refuse("expected a command: info, attend or check (see sorot --help)");
  const std::string& command = arguments.front();
  const Arguments rest(arguments.begin() + 1, arguments.end());
  if (command == "info") return run_info(rest);
  if (command == "attend") return run_attend(rest);
  if (command == "check") return run_check(rest);
  if (command == "--help" || command == "-h" || command == "help") {
    std::fputs(kHelp, stdout);
    return ExitCode::kSuccess;
  }
  if (command == "--version") {
    std::printf("sorot %s\n", sorot::build_info().version);
    return ExitCode::kSuccess;
  }
  refuse("unknown command '{}', expected info, attend or check", command);
}

/// A message may quote a file name with line breaks; the report stays one line.
void report(const char* message) {
  std::fputs("sorot: ", stderr);
  for (const char* c = message; *c != '\0'; ++c) std::fputc(*c == '\n' || *c == '\r' ? ' ' : *c, stderr);
  std::fputc('\n', stderr);
}

}  // namespace

int main(int argc, char** argv) {
  using sorot::tools::ExitCode;
  try {
    return static_cast<int>(dispatch({argv + 1, argv + argc}));
  } catch (const sorot::tools::Failure& failure) {
    report(failure.what());
    return static_cast<int>(failure.exit_code);
  } catch (const std::bad_alloc&) {
    report("not enough memory for these tensors");
    return static_cast<int>(ExitCode::kBadInput);
  } catch (const std::exception& error) {
    report(error.what());
    return static_cast<int>(ExitCode::kBadInput);
  }
}
