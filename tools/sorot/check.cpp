#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/attention_case.h"
#include "tests/support/attention_generator.h"
#include "tests/support/attention_tensors.h"
#include "tests/support/device.h"
#include "tests/support/features.h"
#include "tests/support/run_case.h"
#include "tools/sorot/check_coverage.h"
#include "tools/sorot/command.h"
#include "tools/sorot/emulation.h"

/// `sorot check`: a device against the double-precision oracle, on cases from a file or from the stratified fuzzer.
namespace sorot::tools {
namespace {

using support::AttentionCase;
using support::CaseResult;
using support::PreparedCase;

constexpr std::int64_t kDefaultFuzz = 300;
constexpr std::int64_t kFewestForCoverage = 300;  ///< from this many fuzz cases a gap in coverage is a failure

struct CheckOptions {
  std::string op = "attention";
  std::string device = "auto";
  std::string kernel;
  std::string cases;
  std::string fuzz, seed = "0", only;
  EmulationOptions emulation;
};

/// As a word of a shell command line.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

/// Cases by number, and the options that bring one of them back.
struct Source {
  std::vector<AttentionCase> file;
  std::int64_t fuzz = 0;
  std::uint64_t seed = 0;
  std::string file_name;

  std::int64_t size() const { return static_cast<std::int64_t>(file.size()) + fuzz; }
  bool from_file(std::int64_t n) const { return n < static_cast<std::int64_t>(file.size()); }
  std::int64_t index(std::int64_t n) const { return from_file(n) ? n : n - static_cast<std::int64_t>(file.size()); }
  AttentionCase at(std::int64_t n) const {
    return from_file(n) ? file[static_cast<std::size_t>(n)]
                        : support::generate_attention_case(seed, static_cast<std::uint64_t>(index(n)));
  }
  std::string options(std::int64_t n) const {
    if (from_file(n) && seed == 0) return fmt::format("--cases {} --only {}", quoted(file_name), index(n));
    if (from_file(n)) return fmt::format("--cases {} --seed {} --only {}", quoted(file_name), seed, index(n));
    return fmt::format("--seed {} --only {}", seed, index(n));
  }
};

CheckOptions parse_options(const Arguments& arguments, bool& help) {
  CheckOptions options;
  CLI::App app("Checks a device against the double-precision oracle.", "sorot check");
  const auto value = [&](const char* name, std::string& target, const char* type, const std::string& text) {
    return app.add_option(name, target, text)->type_name(type);
  };
  const char* cases = "Cases";
  value("--op", options.op, "NAME", "operator (default attention)")->group(cases);
  value("--fuzz", options.fuzz, "N", fmt::format("random cases 0..N-1 (default {}; 0 with --cases)", kDefaultFuzz))
      ->group(cases);
  value("--seed", options.seed, "N", "seed of the random cases (default 0)")->group(cases);
  value("--cases", options.cases, "FILE", "JSON: a list of cases as --only prints them, run before the random ones")
      ->group(cases);
  value("--only", options.only, "INDEX", "print this case and run no other: of --cases, else any of the seed's")
      ->group(cases);
  value("--device", options.device, "NAME", "auto, reference or cuda (default auto: a GPU if there is one)")
      ->group("Device");
  value("--kernel", options.kernel, "NAME", "only this kernel (default all that can serve a case)")->group("Device");
  declare_drawn_emulation(app, options.emulation);
  app.footer(fmt::format(
      "A random case depends on --seed and its index alone: dtype, shapes, strides, values, features and mistakes in\n"
      "the args, on an emulated device also profile and order of threads. A case that fails is printed with the "
      "command\n"
      "that runs it again; --only takes indices beyond --fuzz too. With --fuzz {} or more, a feature or kernel that "
      "no\n"
      "case met is a failure. Exit codes: 0 success, 1 mismatch, 2 bad input, 3 no device or something this device "
      "lacks.",
      kFewestForCoverage));
  help = !parse(app, arguments);
  if (!help && options.op != "attention") refuse("--op is '{}', expected attention", options.op);
  return options;
}

std::vector<AttentionCase> read_cases(const std::string& path) {
  std::error_code error_code;
  const bool regular = std::filesystem::is_regular_file(path, error_code);  // a pipe could block, a device never end
  std::ifstream file;
  if (regular) file.open(path, std::ios::binary);
  if (!file.is_open()) refuse("--cases '{}' cannot be read, expected a JSON file", path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  try {
    return support::cases_from_json(text);
  } catch (const std::exception& error) {
    refuse("--cases '{}': {}", path, error.what());
  }
}

std::int64_t parse_count(std::string_view option, const std::string& text) {
  constexpr std::int64_t kMost = 1'000'000'000'000;
  const std::int64_t value = parse_integer(option, text);
  if (value < 0 || value > kMost) refuse("{} is {}, expected 0..{}", option, value, kMost);
  return value;
}

Source make_source(const CheckOptions& options) {
  Source source;
  source.file_name = options.cases;
  if (!options.cases.empty()) source.file = read_cases(options.cases);
  source.seed = static_cast<std::uint64_t>(parse_count("--seed", options.seed));
  if (!options.fuzz.empty()) {
    source.fuzz = parse_count("--fuzz", options.fuzz);
  } else if (options.cases.empty()) {
    source.fuzz = kDefaultFuzz;
  }
  if (source.size() == 0 && options.only.empty()) {
    if (options.cases.empty()) refuse("--fuzz is 0, expected 1 or more, or --cases");
    refuse("--cases '{}' has no cases, expected one or more, or --fuzz", options.cases);
  }
  return source;
}

/// Numbers of the cases to run: first <= n < end.
struct Range {
  std::int64_t first, end;
};

Range chosen(const Source& source, const CheckOptions& options) {
  if (options.only.empty()) return {0, source.size()};
  const std::int64_t only = parse_count("--only", options.only);
  const auto in_file = static_cast<std::int64_t>(source.file.size());
  if (!options.cases.empty() && only >= in_file) {
    refuse("--only is {}, expected below {}, the number of cases in '{}'", only, in_file, options.cases);
  }
  return {only, only + 1};  // without a file: an index of the fuzzer's stream, however long
}

/// One line on standard error that is overwritten; nothing where no person watches.
class Progress {
 public:
  explicit Progress(std::size_t total) : total_(total), shown_(total > 1 && isatty(STDERR_FILENO) != 0) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step() {
    ++done_;
    constexpr std::size_t kWidth = 40;
    const std::size_t filled = done_ * kWidth / total_;
    if (!shown_ || (filled == filled_ && done_ % 16 != 0)) return;
    filled_ = filled;
    fmt::print(stderr, "\r[{:<{}}] {}/{}", std::string(filled, '='), kWidth, done_, total_);
    std::fflush(stderr);
  }
  void clear() const {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }

 private:
  std::size_t total_;
  std::size_t done_ = 0;
  std::size_t filled_ = 0;
  bool shown_;
};

class Checker {
 public:
  Checker(const CheckOptions& options, Source source)
      : options_(options),
        source_(std::move(source)),
        device_(choose_device(options.device)),
        emulation_(options.emulation, device_),
        opened_(open_device(device_)),
        kernels_(support::kernel_names(device_, options.op)),
        coverage_({}, "", {}) {
    if (!options.kernel.empty()) {
      if (std::find(kernels_.begin(), kernels_.end(), options.kernel) == kernels_.end()) {
        throw Failure(ExitCode::kNoDevice, fmt::format("device {} has no {} kernel '{}', only {}", device_, options.op,
                                                       options.kernel, fmt::join(kernels_, ", ")));
      }
      kernels_ = {options.kernel};
    }
    coverage_ = Coverage(support::attention_features(), device_, kernels_);
  }

  ExitCode run() {
    const Range range = chosen(source_, options_);
    Progress progress(static_cast<std::size_t>(range.end - range.first));
    std::int64_t failed = 0;
    for (std::int64_t n = range.first; n < range.end; ++n) {
      const AttentionCase c = source_.at(n);
      draw_device(n);
      if (source_.from_file(n)) require_sound(c, n);
      if (!options_.only.empty()) fmt::print("case {}: {}\n", source_.index(n), support::to_json(c));
      const std::vector<std::string> problems = check(c);
      if (!problems.empty()) {
        progress.clear();
        const std::string more = problems.size() > 1 ? fmt::format(" (and {} more)", problems.size() - 1) : "";
        fmt::print("FAILED case {}: {}{}; reproduce: {}\n", source_.index(n), problems.front(), more, command(n));
      }
      failed += problems.empty() ? 0 : 1;
      progress.step();
    }
    progress.clear();
    if (options_.only.empty()) coverage_.print_table();
    const bool covered = options_.only.empty() ? report_gaps() : true;
    fmt::print("{} passed, {} failed\n", range.end - range.first - failed, failed);
    return failed == 0 && covered ? ExitCode::kSuccess : ExitCode::kMismatch;
  }

 private:
  /// What an emulated device is like changes from case to case, and a Context keeps what it was opened on.
  void draw_device(std::int64_t n) {
    if (!support::kEmulated || opened_.on_host()) return;
    emulation_.apply_drawn(source_.seed, static_cast<std::uint64_t>(source_.index(n)));
    opened_ = open_device(device_);
  }

  /// A case that no device may accept is a mistake of the file, not of the device.
  void require_sound(const AttentionCase& c, std::int64_t n) const {
    AttentionPlan plan;
    const Status status = attention_plan(opened_.context(), support::AttentionTensors(c).args(), plan);
    if (status.code() != StatusCode::kInvalidArgument) return;
    refuse("--cases {}: case {}: {}", quoted(source_.file_name), source_.index(n), status.message());
  }

  /// All that is wrong with a case and its siblings, on every kernel.
  std::vector<std::string> check(const AttentionCase& c) {
    std::vector<std::string> problems;
    for (const auto& [what, sibling] : support::with_siblings(c)) {
      const PreparedCase prepared(sibling);
      bool served = false;
      for (const std::string& kernel : kernels_) {
        const CaseResult result = run_case(opened_, prepared, kernel);
        served = served || result.served;
        if (!result.served) {
          coverage_.count_refused(kernel, sibling.dtype, prepared.features);
          continue;
        }
        if (!result.kernel.empty()) coverage_.count(result.kernel, result.variant, sibling.dtype, prepared.features);
        if (!result.passed()) {
          problems.push_back(fmt::format(
              "{}{} {}: {}{}", what, kernel, name(sibling.dtype), result.problem,
              result.judged ? fmt::format(" (worst error {:.3g}, tolerance {:.3g})", result.error, result.tolerance)
                            : ""));
        }
      }
      if (served && options_.kernel.empty()) {
        // The plan's own choice must be one of them.
        AttentionPlan plan;
        const Status status = attention_plan(opened_.context(), prepared.tensors.args(), plan);
        if (!status.ok()) problems.push_back(fmt::format("{}no plan without a hint: {}", what, status.message()));
      }
    }
    if (c.invalid >= 0) {
      const std::string problem = run_invalid(opened_, c, static_cast<std::size_t>(c.invalid));
      if (!problem.empty()) problems.push_back(problem);
    }
    return problems;
  }

  std::string command(std::int64_t n) const {
    const std::string kernel = options_.kernel.empty() ? "" : " --kernel " + options_.kernel;
    return fmt::format("sorot check --op {} --device {}{}{} {}", options_.op, device_, kernel, emulation_.options(),
                       source_.options(n));
  }

  /// True if nothing is missing, or too few cases ran to expect it.
  bool report_gaps() const {
    const std::vector<std::string> gaps = coverage_.gaps(options_.op);
    const bool must_cover = source_.fuzz >= kFewestForCoverage;
    if (gaps.empty()) {
      fmt::print("\ncoverage is full\n");
    } else if (must_cover) {
      fmt::print("\n");
      for (const std::string& gap : gaps) fmt::print("NOT COVERED {}\n", gap);
    } else {
      fmt::print("\n{} gaps in coverage; --fuzz {} and more must have none\n", gaps.size(), kFewestForCoverage);
    }
    return gaps.empty() || !must_cover;
  }

  CheckOptions options_;
  Source source_;
  std::string device_;
  Emulation emulation_;
  support::Device opened_;
  std::vector<std::string> kernels_;
  Coverage coverage_;
};

}  // namespace

ExitCode run_check(const Arguments& arguments) {
  bool help = false;
  const CheckOptions options = parse_options(arguments, help);
  if (help) return ExitCode::kSuccess;
  Checker checker(options, make_source(options));
  return checker.run();
}

}  // namespace sorot::tools
