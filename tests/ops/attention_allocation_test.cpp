#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <string_view>

#include "cuda/emulator/control.h"
#include "tests/ops/allocation_counter.h"
#include "tests/ops/devices.h"
#include "tests/support/attention_generator.h"
#include "tests/support/attention_problem.h"
#include "tests/support/attention_tensors.h"
#include "tests/support/device_args.h"

/// Planning, running, failing and explaining allocate nothing.
namespace sorot::support {
namespace {

/// Kept where the compiler cannot see that nobody reads it, or it would allocate nothing at all.
void* volatile kept = nullptr;

template <class Allocate>
long allocations_in(Allocate allocate) {
  const AllocationCounter counter;
  kept = allocate();
  return counter.count();
}

// NOLINTBEGIN(cppcoreguidelines-no-malloc)
TEST(AllocationCounter, SeesEveryKindOfAllocation) {
  EXPECT_EQ(allocations_in([] { return std::malloc(10); }), 1);
  std::free(kept);
  EXPECT_EQ(allocations_in([] { return std::calloc(10, 2); }), 1);
  EXPECT_EQ(allocations_in([] { return std::realloc(kept, 10'000); }), 1);
  std::free(kept);
  EXPECT_EQ(allocations_in([] { return std::aligned_alloc(64, 64); }), 1);
  std::free(kept);
  EXPECT_EQ(allocations_in([] { return ::operator new(10); }), 1);
  ::operator delete(kept);
  EXPECT_EQ(allocations_in([] { return kept; }), 0);
}
// NOLINTEND(cppcoreguidelines-no-malloc)

/// Allocations of device memory that are alive, where somebody counts them.
std::size_t device_allocations() {
  if constexpr (kEmulated) return emulator::memory_use().allocations;
  return 0;
}

class AttentionAllocation : public OnEveryDevice {};
SOROT_ON_EVERY_DEVICE(AttentionAllocation);

TEST_P(AttentionAllocation, PlanningAndRunningAllocateNothing) {
  for (std::uint64_t index = 0; index < 40; ++index) {
    const AttentionTensors tensors(generate_attention_case(2, index));
    const AttentionArgs args = tensors.args();
    AttentionPlan plan;
    if (attention_plan(context_, args, plan).code() == StatusCode::kUnsupported) continue;
    const DeviceMemory memory(device_, plan.workspace_bytes);
    const Workspace workspace = memory.workspace();
    DeviceArgs there(device_, args);
    const std::size_t before = device_allocations();
    long planning = 0;
    long running = 0;
    bool ok = false;
    {
      const AllocationCounter counter;
      ok = attention_plan(context_, there.args(), plan).ok() && explain(plan).text[0] != '\0';
      planning = counter.count();
      ok = ok && attention(context_, plan, there.args(), workspace).ok() &&
           attention(context_, there.args(), workspace).ok();
      running = counter.count() - planning;
    }
    EXPECT_TRUE(ok);
    EXPECT_EQ(planning, 0);
    EXPECT_EQ(device_allocations(), before);
    // What the CUDA runtime or the emulator takes for a launch is theirs.
    if (device_.on_host()) {
      EXPECT_EQ(running, 0);
    }
  }
}

TEST_P(AttentionAllocation, FailingAllocatesNothing) {
  AttentionProblemF32 p({1, 5, 2, 1, 1, 1, 1});
  AttentionPlan plan;
  const AllocationCounter counter;
  const Status status = attention_plan(context_, p.args, plan);
  const bool copied = std::string_view(Status(status).message()).size() > 10;
  const long allocations = counter.count();
  EXPECT_TRUE(copied);
  EXPECT_EQ(allocations, 0);
}

}  // namespace
}  // namespace sorot::support
