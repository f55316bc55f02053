#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "cuda/emulator/control.h"
#include "cuda/machine/runtime.h"
#include "tests/ops/devices.h"
#include "tests/support/attention_problem.h"
#include "tests/support/device_args.h"
#include "tests/support/read_args.h"

/// Cases from the field: on which stream work goes, and what a captured graph keeps.
namespace sorot::support {
namespace {

class AttentionStreams : public OnEveryDevice {};
SOROT_ON_CUDA(AttentionStreams);

/// A problem on the device, planned and ready to be called.
struct Prepared {
  Prepared(const Device& device, const AttentionArgs& host)
      : there(device, host), plan(plan_for(device, host)), workspace(device, plan.workspace_bytes) {}

  static AttentionPlan plan_for(const Device& device, const AttentionArgs& args) {
    AttentionPlan plan;
    const Status status = attention_plan(device.context(), args, plan);
    EXPECT_TRUE(status.ok()) << status.message();
    return plan;
  }
  Status call(const Device& device) { return attention(device.context(), plan, there.args(), workspace.workspace()); }

  DeviceArgs there;
  AttentionPlan plan;
  DeviceMemory workspace;
};

bool all_nan(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isnan(x); });
}

TEST_P(AttentionStreams, FieldCase33AReplaySeesTheLengthsOfItsTime) {
  if constexpr (kHasCuda) {
    constexpr AttentionProblemF32::Sizes kSizes{1, 4, 2, 3, 16, 8, 8};
    AttentionProblemF32 p(kSizes);
    std::int32_t length = 8;
    p.args.kv_lengths = view(static_cast<const std::int32_t*>(&length), {1});
    p.args.causal = true;
    p.args.align = Align::bottom_right;
    Prepared call(device_, p.args);
    device_.wait();

    machine::Graph graph = nullptr;
    ASSERT_TRUE(machine::begin_capture(device_.stream()).ok());
    const Status recorded = call.call(device_);
    const Status ended = machine::end_capture(device_.stream(), graph);
    ASSERT_TRUE(recorded.ok()) << recorded.message();
    ASSERT_TRUE(ended.ok()) << ended.message();
    EXPECT_EQ(call.there.copy_back(), "");
    EXPECT_TRUE(all_nan(p.out_data)) << "the call ran while it was recorded";

    for (const std::int32_t now : {8, 16, 0, 5}) {
      length = now;
      std::fill(p.out_data.begin(), p.out_data.end(), kNan);
      call.there.copy_in();
      const Status replayed = machine::replay(graph, device_.stream());
      ASSERT_TRUE(replayed.ok()) << replayed.message();
      EXPECT_EQ(call.there.copy_back(), "");
      EXPECT_EQ(judge_call(p.args).what, "") << "length " << now;
    }
    EXPECT_TRUE(machine::destroy_graph(graph).ok());
  }
}

/// Of the emulator's record, which no launch escapes. On a GPU a capture (above) fails over work elsewhere.
TEST_P(AttentionStreams, FieldCase34EveryLaunchIsOnTheCallersStream) {
  if constexpr (!kEmulated) {
    GTEST_SKIP() << "only the emulator keeps a record of launches";
  } else {
    const Device other(GetParam());
    ASSERT_NE(other.stream(), device_.stream());
    for (const Device* device : {&std::as_const(device_), &other}) {
      ASSERT_NE(device->stream(), nullptr);
      // Prefill, decoding, long keys (which a kernel may split), all extras.
      for (const auto& sizes : {AttentionProblemF32::Sizes{1, 2, 2, 33, 33, 16, 16},
                                {2, 8, 2, 1, 40, 64, 64},
                                {1, 1, 1, 1, 2000, 32, 32},
                                {1, 3, 1, 70, 5, 3, 7}}) {
        AttentionProblemF32 p(sizes);
        Prepared call(*device, p.args);
        emulator::clear_launches();
        ASSERT_TRUE(call.call(*device).ok());
        const std::vector<emulator::LaunchRecord> launches = emulator::launches();
        EXPECT_FALSE(launches.empty());
        for (const emulator::LaunchRecord& launch : launches) EXPECT_EQ(launch.stream, device->stream());
      }
    }
  }
}

TEST_P(AttentionStreams, AnEmptyProblemLaunchesNothing) {
  if constexpr (kEmulated) {
    AttentionProblemF32 p({1, 2, 2, 0, 5, 8, 8});
    Prepared call(device_, p.args);
    emulator::clear_launches();
    ASSERT_TRUE(call.call(device_).ok());
    EXPECT_TRUE(emulator::launches().empty());
  }
}

}  // namespace
}  // namespace sorot::support
