#include <gmock/gmock.h>

#include <string>

#include "cuda/machine/isa.cuh"
#include "tests/emulator/device_fixture.h"
#include "tests/support/device.h"
#include "tests/support/run_case.h"

/// What the checker tells of a kernel with a race: both accesses, whether or not an order of threads shows a
/// difference.
namespace sorot::support {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Params {
  float* out = nullptr;
};

struct Words {
  int word[64];
};

__global__ void misses_a_barrier(const Params p) {
  Words& s = machine::shared<Words>();
  const unsigned t = machine::thread_index().x;
  machine::store_shared(&s.word[t], 1);                        // BUG: early store
  const bool stored = machine::load_shared(&s.word[63]) == 1;  // BUG: early load
  if (t == 0) machine::store_global(p.out, stored ? 1.F : 2.F);
}

__global__ void misses_a_barrier_unseen(const Params) {
  Words& s = machine::shared<Words>();
  machine::store_shared(&s.word[machine::thread_index().x], 1);  // BUG: unseen store
  static_cast<void>(machine::load_shared(&s.word[63]));
}

std::string line(const std::string& name) { return emulator::bug_line(__FILE__, name); }

CaseResult run(void (*kernel)(Params), std::int64_t keys) {
  AttentionCase c;
  c.queries = 64;
  c.keys = keys;
  Sabotage sabotage;
  sabotage.work = [kernel](const Device& device, const AttentionArgs& args) {
    const Params params{static_cast<float*>(args.out.data)};
    return machine::launch({"kernel_with_a_race", {1}, {64}, sizeof(Words), device.stream()}, kernel, params);
  };
  return run_case(Device("cuda"), PreparedCase(c), "", sabotage);
}

TEST(RaceReports, ARunThatDiffersIsWatchedForRaces) {
  const CaseResult result = run(misses_a_barrier, 1024);  // too large to be watched from the outset
  EXPECT_THAT(result.problem,
              AllOf(HasSubstr("out has other bits in"), HasSubstr("; watched for races: launch at "),
                    HasSubstr(line("early store")), HasSubstr(line("early load")), HasSubstr("no barrier between")));
  EXPECT_FALSE(result.judged);
}

TEST(RaceReports, ARaceThatMakesNoDifferenceIsToldOnce) {
  const CaseResult result = run(misses_a_barrier_unseen, 8);
  EXPECT_THAT(result.problem, AllOf(HasSubstr("in reverse order: "), HasSubstr(line("unseen store")),
                                    HasSubstr("no barrier between"), Not(HasSubstr("watched for races"))));
}

TEST(RaceReports, ARunThatIsWrongIsWatchedToo) {
  AttentionCase c;
  c.queries = c.keys = 8;
  Sabotage sabotage;
  sabotage.results = [](const AttentionTensors& tensors) { tensors.outputs()[0]->set(0, 7); };
  const CaseResult result = run_case(Device("cuda"), PreparedCase(c), "", sabotage);
  EXPECT_TRUE(result.judged);
  EXPECT_FALSE(result.passed());
  EXPECT_THAT(result.problem, Not(HasSubstr("watched for races"))) << "the kernels of attention have none";
}

}  // namespace
}  // namespace sorot::support
