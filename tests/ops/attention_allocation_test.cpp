#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <string_view>

#include "tests/ops/allocation_counter.h"
#include "tests/ops/devices.h"
#include "tests/support/attention_generator.h"
#include "tests/support/attention_problem.h"
#include "tests/support/attention_tensors.h"
#include "tests/support/guarded_buffer.h"

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

class AttentionAllocation : public OnEveryDevice {};
SOROT_ON_EVERY_DEVICE(AttentionAllocation);

TEST_P(AttentionAllocation, PlanningAndRunningAllocateNothing) {
  for (std::uint64_t index = 0; index < 40; ++index) {
    const AttentionTensors tensors(generate_attention_case(2, index));
    const AttentionArgs args = tensors.args();
    AttentionPlan plan;
    if (attention_plan(context_, args, plan).code() == StatusCode::kUnsupported) continue;
    GuardedBuffer memory(plan.workspace_bytes);
    const Workspace workspace{plan.workspace_bytes == 0 ? nullptr : memory.data(), plan.workspace_bytes};
    long allocations = 0;
    bool ok = false;
    {
      const AllocationCounter counter;
      ok = attention_plan(context_, args, plan).ok() && attention(context_, plan, args, workspace).ok() &&
           attention(context_, args, workspace).ok() && explain(plan).text[0] != '\0';
      allocations = counter.count();
    }
    EXPECT_TRUE(ok);
    EXPECT_EQ(allocations, 0);
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
