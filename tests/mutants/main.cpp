#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cuda/emulator/control.h"
#include "sorot/attention.h"
#include "tests/mutants/problems.h"
#include "tests/mutants/switch.h"
#include "tests/support/device_args.h"
#include "tests/support/read_args.h"
#include "tests/support/run_case.h"

/// mutants TABLE ALLOWED KERNEL [NAME...]: wakes the mutants of a kernel (or those whose name contains a NAME) one by
/// one, each in a process of its own, and runs problems under every schedule until one of them notices. Prints who
/// noticed what. Fails if nobody did, and the mutant is not in the list of those allowed to live; if one in the list is
/// noticed; and if kernels without a mutant are.
namespace mutants {
namespace {

using namespace sorot;           // NOLINT(google-build-using-namespace)
using namespace sorot::support;  // NOLINT(google-build-using-namespace)

constexpr long kMostSeconds = 2;       // of CPU time, for a launch that takes a tenth of one
constexpr double kMostAllowed = 0.05;  // of all mutants

struct Mutant {
  int number = 0;
  std::string name, kind, kernel, where, text, mistake;
};

struct Prepared {
  std::string what, kernel;
  std::unique_ptr<PreparedCase> prepared;
};

struct Schedule {
  const char* name;
  emulator::Settings settings;
};

std::vector<Schedule> schedules() {
  using emulator::Copies;
  using emulator::Order;
  const auto settings = [](Order order, std::uint64_t seed, Copies copies, bool race) {
    emulator::Settings s;
    s.profile = 80;
    s.order = order;
    s.seed = seed;
    s.copies = copies;
    s.race = race;
    return s;
  };
  return {{"forward", settings(Order::forward, 0, Copies::lazy, false)},
          {"reverse", settings(Order::reverse, 0, Copies::eager, false)},
          {"random 1", settings(Order::random, 1, Copies::random, false)},
          {"random 2", settings(Order::random, 2, Copies::random, false)},
          {"forward, watched", settings(Order::forward, 0, Copies::lazy, true)},
          {"reverse, watched", settings(Order::reverse, 0, Copies::eager, true)}};
}

/// How a run went: a letter for the table, and words.
struct Outcome {
  char letter =
      '.';  ///< . nothing, R race, r other report, V value, N NaN or infinity, D damage elsewhere, B other bits
  std::string words;
};

/// Every byte of the elements of out, lse and weights.
std::vector<std::byte> bits_of(const AttentionTensors& tensors) {
  std::vector<std::byte> bits;
  for (const StridedTensor* output : tensors.outputs()) {
    const std::size_t width = size_of(output->view().dtype);
    for (std::size_t e = 0; e < output->size(); ++e)
      bits.insert(bits.end(), output->address(e), output->address(e) + width);
  }
  return bits;
}

Outcome run(const Device& device, const Prepared& problem, std::vector<std::byte>& bits) {
  constexpr std::byte kFill{0x5A};
  const PreparedCase& prepared = *problem.prepared;
  const AttentionTensors& tensors = prepared.tensors;
  const AttentionArgs args = tensors.args();
  AttentionPlan plan;
  if (const Status s = attention_plan(device.context(), args, plan, PlanHint{problem.kernel.c_str()}); !s.ok()) {
    return {'?', s.message()};
  }
  tensors.fill_outputs(kFill);
  try {
    DeviceArgs there(device, args);
    DeviceMemory workspace(device, plan.workspace_bytes);
    workspace.fill(kFill);
    if (const Status s = attention(device.context(), plan, there.args(), workspace.workspace()); !s.ok()) {
      const bool race = std::strstr(s.message(), "race: ") != nullptr;
      return {race ? 'R' : 'r', s.message()};
    }
    if (std::string changed = there.copy_back(); !changed.empty()) return {'D', changed};
  } catch (const DeviceError& error) {
    return {'r', error.what()};
  }
  if (std::string damaged = tensors.damage(kFill); !damaged.empty()) return {'D', damaged};
  bits = bits_of(tensors);
  const Verdict verdict = judge_outputs(args, prepared.problem, prepared.oracle, prepared.tolerance);
  if (!verdict.ok) return {verdict.what.find("nan") != std::string::npos ? 'N' : 'V', verdict.what};
  return {};
}

/// Ends the process if the next launch never ends.
void limit_time() {
  itimerval timer{};
  timer.it_value.tv_sec = kMostSeconds;
  setitimer(ITIMER_PROF, &timer, nullptr);
}

/// A problem under every schedule: a letter each.
struct Noticed {
  std::string letters, words;
  bool any() const { return letters.find_first_not_of('.') != std::string::npos; }
};

Noticed run_all(const Device& device, const Prepared& problem) {
  Noticed noticed;
  std::vector<std::byte> first;
  for (const Schedule& schedule : schedules()) {
    const emulator::Scoped scoped(schedule.settings);
    std::vector<std::byte> bits;
    limit_time();
    Outcome outcome = run(device, problem, bits);
    if (outcome.letter == '.') {
      if (first.empty()) first = bits;
      if (bits != first) outcome = {'B', "other bits than in the first schedule"};
    }
    noticed.letters += outcome.letter;
    if (outcome.letter != '.' && noticed.words.empty())
      noticed.words = std::string(schedule.name) + ": " + outcome.words;
  }
  return noticed;
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "mutants: cannot read %s\n", path.c_str());
    std::_Exit(2);
  }
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<Mutant> read_table(const std::string& path) {
  std::vector<Mutant> table;
  for (const std::string& line : lines_of(path)) {
    std::vector<std::string> fields;
    std::istringstream in(line);
    for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
    fields.resize(7);
    table.push_back({std::stoi(fields[0]), fields[1], fields[2], fields[3], fields[4], fields[5], fields[6]});
  }
  return table;
}

/// Names of mutants that may live; a line is a name, or the indented reason for those before it.
std::vector<std::string> read_allowed(const std::string& path) {
  std::vector<std::string> names;
  for (const std::string& line : lines_of(path)) {
    if (!line.empty() && line[0] != '#' && line[0] != ' ') names.push_back(line);
  }
  return names;
}

/// What a child found, as it comes through a pipe: "letters \t problem \t words".
struct Result {
  bool noticed = false, reached = false;
  std::string letters, problem, words;
};

class Runner {
 public:
  explicit Runner(const std::string& family) : device_("cuda") {
    for (const Problem& problem : problems_for(family)) {
      problems_.push_back({problem.what, problem.kernel, std::make_unique<PreparedCase>(problem.description)});
    }
  }

  /// All problems, none of which may be noticed. Prints what is.
  bool clean() const {
    bool ok = !problems_.empty();
    for (const Prepared& problem : problems_) {
      const auto begin = std::chrono::steady_clock::now();
      const Noticed noticed = run_all(device_, problem);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      std::printf("no mutant, %s: %s %s (%.2f s)\n", problem.what.c_str(), noticed.letters.c_str(),
                  noticed.words.c_str(), seconds.count());
      ok = ok && !noticed.any();
    }
    return ok;
  }

  /// In a process of its own: mutants write where they should not, or never end.
  Result run(const Mutant& mutant) const {
    std::fflush(stdout);
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) std::_Exit(2);
    const pid_t child = fork();
    if (child == 0) {
      awake = mutant.number;
      std::string line;
      for (const Prepared& problem : problems_) {
        const Noticed noticed = run_all(device_, problem);
        if (!noticed.any()) continue;
        line = "+\t" + noticed.letters + "\t" + problem.what + "\t" + noticed.words;
        break;
      }
      if (line.empty()) line = "-";
      line += was_reached ? "\treached" : "\tnever";
      std::replace(line.begin(), line.end(), '\n', ' ');
      const auto written = write(ends[1], line.data(), line.size());
      std::_Exit(written == static_cast<ssize_t>(line.size()) ? 0 : 2);
    }
    close(ends[1]);
    std::string line;
    std::array<char, 4096> buffer{};
    for (ssize_t n; (n = read(ends[0], buffer.data(), buffer.size())) > 0;)
      line.append(buffer.data(), static_cast<std::size_t>(n));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || line.empty()) {
      const bool hung = WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF;
      return {true, true, hung ? "hangs" : "crash", "", hung ? "" : "signal " + std::to_string(WTERMSIG(status))};
    }
    std::vector<std::string> fields;
    std::istringstream in(line);
    for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
    if (fields[0] == "-") return {false, fields.at(1) == "reached", "", "", ""};
    return {true, true, fields.at(1), fields.at(2), fields.at(3)};
  }

 private:
  Device device_;
  std::vector<Prepared> problems_;
};

bool wanted(const Mutant& mutant, const std::vector<std::string>& names) {
  return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
           return mutant.name.find(name) != std::string::npos;
         });
}

int main(const std::vector<std::string>& arguments) {
  const std::vector<Mutant> table = read_table(arguments.at(0));
  const std::vector<std::string> allowed = read_allowed(arguments.at(1));
  const std::string& kernel = arguments.at(2);
  const std::vector<std::string> names(arguments.begin() + 3, arguments.end());
  for (const std::string& name : allowed) {
    if (std::none_of(table.begin(), table.end(), [&](const Mutant& mutant) { return mutant.name == name; })) {
      std::printf("FAILED: '%s' is allowed to live, but there is no such mutant\n", name.c_str());
      return 1;
    }
  }
  const Runner runner(kernel);
  if (!runner.clean()) {
    std::printf("FAILED: kernels without a mutant are not clean\n");
    return 1;
  }

  std::printf(
      "\nUnder the schedules forward (copies lazy), reverse (eager), random, random, forward and reverse watched for "
      "races:\nV value, N not finite, R race, r other report, D damage, B other bits, . nothing\n\n");
  std::size_t count = 0, survivors = 0, wrong = 0;
  std::vector<std::size_t> by_schedule(schedules().size());
  for (const Mutant& mutant : table) {
    if ((mutant.kernel != kernel && mutant.kernel != "any") || !wanted(mutant, names)) continue;
    ++count;
    const Result result = runner.run(mutant);
    const bool may_live = std::find(allowed.begin(), allowed.end(), mutant.name) != allowed.end();
    if (!result.noticed) ++survivors;
    for (std::size_t n = 0; result.noticed && n < by_schedule.size(); ++n) {
      const bool ended = result.letters.size() != by_schedule.size();  // "hangs" or "crash", in the first one
      if (ended || result.letters[n] != '.') ++by_schedule[n];
    }
    const char* word = result.noticed   ? may_live ? "NOTICED, but allowed to live: strike it off the list" : ""
                       : may_live       ? "allowed to live"
                       : result.reached ? "NOT NOTICED"
                                        : "NOT NOTICED, never reached";
    if (result.noticed == may_live) ++wrong;
    std::printf("%-6s %-60s %-28s %s%s\n", result.noticed ? result.letters.c_str() : "-", mutant.name.c_str(),
                mutant.kind.c_str(), result.problem.c_str(), word);
    if (!names.empty())
      std::printf("       %s: %s -> %s\n       %s\n", mutant.where.c_str(), mutant.text.c_str(), mutant.mistake.c_str(),
                  result.words.c_str());
  }
  std::printf("\n%zu mutants of %s, %zu not noticed\n", count, kernel.c_str(), survivors);
  for (std::size_t n = 0; n < by_schedule.size(); ++n) {
    std::printf("%zu noticed in the schedule '%s'\n", by_schedule[n], schedules()[n].name);
  }
  if (names.empty() && static_cast<double>(survivors) > kMostAllowed * static_cast<double>(count)) {
    std::printf("FAILED: more than %.0f %% live\n", 100 * kMostAllowed);
    return 1;
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace mutants

int main(int count, char** arguments) {
  if (count < 4) {
    std::fprintf(stderr, "usage: mutants TABLE ALLOWED KERNEL [NAME...]\n");
    return 2;
  }
  return mutants::main(std::vector<std::string>(arguments + 1, arguments + count));
}
