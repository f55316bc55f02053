#include "tools/sorot/command.h"

namespace sorot::tools {

ExitCode run_check(const Arguments& arguments) {
  CLI::App app("in work", "sorot check");
  if (!parse(app, arguments)) return ExitCode::kSuccess;
  return ExitCode::kSuccess;
}

}  // namespace sorot::tools
