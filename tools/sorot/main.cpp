#include <csignal>
#include <cstdio>
#include <exception>
#include <system_error>

#include "tools/sorot/command.h"

namespace {

constexpr char kHelp[] =
    "Usage: sorot COMMAND [options]\n"
    "\n"
    "  info     what this build is and on which devices it computes\n"
    "  attend   attention over .npy files\n"
    "  check    a device against the double-precision oracle\n"
    "\n"
    "`sorot COMMAND --help` lists a command's options. Exit codes: 0 success, 1 mismatch, 2 bad input, 3 no device\n"
    "or something this device lacks.\n";

sorot::tools::ExitCode dispatch(const sorot::tools::Arguments& arguments) {
  using namespace sorot::tools;
  if (arguments.empty()) refuse("expected a command: info, attend or check (see sorot --help)");
  const std::string& command = arguments.front();
  const Arguments rest(arguments.begin() + 1, arguments.end());
  const auto stands_alone = [&] {
    if (!rest.empty()) refuse("{} takes nothing else, but '{}' follows", command, rest.front());
  };
  if (command == "info") return run_info(rest);
  if (command == "attend") return run_attend(rest);
  if (command == "check") return run_check(rest);
  if (command == "--help" || command == "-h" || command == "help") {
    stands_alone();
    print(kHelp);
    return ExitCode::kSuccess;
  }
  if (command == "--version") {
    stands_alone();
    print(fmt::format("sorot {}\n", sorot::build_info().version));
    return ExitCode::kSuccess;
  }
  refuse("unknown command '{}', expected info, attend or check", command);
}

/// A message may quote line breaks and escape sequences of a file; the report stays one line that is safe to show.
void report(const char* message) {
  std::fputs("sorot: ", stderr);
  for (const char* c = message; *c != '\0'; ++c) {
    const bool control = static_cast<unsigned char>(*c) < ' ' || *c == '\x7F';
    std::fputc(control ? '?' : *c, stderr);
  }
  std::fputc('\n', stderr);
}

}  // namespace

int main(int argc, char** argv) {
  using sorot::tools::ExitCode;
  const auto at_broken_pipe = std::signal(SIGPIPE, SIG_IGN);  // a reader that has gone: clean up first
  std::signal(SIGXFSZ, SIG_IGN);                              // and so is a file that may not grow further
  try {
    const ExitCode code = dispatch({argv + 1, argv + argc});
    sorot::tools::print("");
    return static_cast<int>(code);
  } catch (const sorot::tools::Failure& failure) {
    report(failure.what());
    return static_cast<int>(failure.exit_code);
  } catch (const sorot::support::DeviceError& error) {
    report(error.what());
    return static_cast<int>(ExitCode::kNoDevice);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::broken_pipe) {
      std::signal(SIGPIPE, at_broken_pipe);
      std::raise(SIGPIPE);  // in silence, as other tools; it returns where the caller ignores the signal
    }
    report(error.what());
    return static_cast<int>(ExitCode::kBadInput);
  } catch (const std::bad_alloc&) {
    report("not enough memory for these tensors");
    return static_cast<int>(ExitCode::kBadInput);
  } catch (const std::exception& error) {
    report(error.what());
    return static_cast<int>(ExitCode::kBadInput);
  }
}
