#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/ops/devices.h"
#include "tests/support/attention_generator.h"
#include "tests/support/attention_problem.h"
#include "tests/support/device_args.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/read_args.h"

/// The life of a plan: what it serves, what it refuses, what a call leaves alone.
namespace sorot::support {
namespace {

const AttentionProblemF32::Sizes kSizes{2, 4, 2, 5, 9, 8, 6};

/// A plan with the workspace it asks for.
struct Planned {
  Planned(const Device& device, const AttentionArgs& args)
      : plan(plan_for(device, args)), memory(device, plan.workspace_bytes) {}

  static AttentionPlan plan_for(const Device& device, const AttentionArgs& args) {
    AttentionPlan plan;
    const Status status = attention_plan(device.context(), args, plan);
    EXPECT_TRUE(status.ok()) << status.message();
    return plan;
  }
  Workspace workspace() const { return memory.workspace(); }

  AttentionPlan plan;
  DeviceMemory memory;
};

class AttentionCalls : public OnEveryDevice {};
SOROT_ON_EVERY_DEVICE(AttentionCalls);

TEST_P(AttentionCalls, OutHasTheSameBitsWithAndWithoutLseAndWeights) {
  AttentionProblemF32 all(kSizes);
  ASSERT_TRUE(all.run(device_).ok());
  for (const bool lse : {false, true}) {
    AttentionProblemF32 some(kSizes);
    (lse ? some.args.weights : some.args.lse) = {};
    ASSERT_TRUE(some.run(device_).ok());
    EXPECT_TRUE(same_bits(some.out_data, all.out_data));
    AttentionProblemF32 none(kSizes);
    none.args.lse = none.args.weights = {};
    ASSERT_TRUE(none.run(device_).ok());
    EXPECT_TRUE(same_bits(none.out_data, all.out_data));
  }
}

TEST_P(AttentionCalls, WithoutRowsThereIsNoScratchHoweverManyKeys) {
  static constexpr float kOne[8] = {1};
  const ConstTensorView keys = view(kOne, {1, 1, 1, 8}).expand(2, std::int64_t{1} << 60);
  const ConstTensorView no_rows = view(kOne, {1, 1, 0, 8});
  AttentionArgs args{no_rows, keys, keys, view(static_cast<float*>(nullptr), {1, 1, 0, 8})};
  AttentionPlan plan;
  Status status = attention_plan(context_, args, plan);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(plan.workspace_bytes, 0U);
  status = attention(context_, plan, args, {});
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_P(AttentionCalls, APlanServesOtherPointersAndOtherValues) {
  AttentionProblemF32 first(kSizes);
  std::int32_t lengths[] = {9, 9};
  first.args.kv_lengths = view(static_cast<const std::int32_t*>(lengths), {2});
  const Planned planned(device_, first.args);
  AttentionProblemF32 second(kSizes);
  for (float& x : second.q_data) x *= 2;
  second.args.kv_lengths = first.args.kv_lengths;
  lengths[1] = 4;
  const Status status = run_plan(device_, planned.plan, second.args);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(judge_call(second.args).what, "");
}

TEST_P(AttentionCalls, AContextThatLostItsDeviceAnswersNoDeviceEvenWithAPlan) {
  AttentionProblemF32 p(kSizes);
  const Planned planned(device_, p.args);
  const Status status = attention(Context(), planned.plan, p.args, planned.workspace());
  EXPECT_EQ(status.code(), StatusCode::kNoDevice) << status.message();
}

TEST_P(AttentionCalls, APlanRefusesArgsThatDifferInAnyField) {
  using A = AttentionArgs;
  static constexpr std::int32_t kNumbers[] = {1, 2, 3, 4};
  static constexpr float kFloats[64] = {};
  static constexpr bool kMask[] = {true};
  const std::pair<const char*, std::function<void(A&)>> changes[] = {
      {"q", [](A& a) { a.q.strides[0] += 1; }},
      {"k", [](A& a) { std::swap(a.k.strides[0], a.k.strides[1]); }},
      {"v", [](A& a) { a.v.strides[2] = 0; }},
      {"out", [](A& a) { a.out.strides[0] += 1; }},
      {"kv_lengths", [](A& a) { a.kv_lengths = view(kNumbers, {2}); }},
      {"align", [](A& a) { a.align = Align::bottom_right; }},
      {"align", [](A& a) { a.align = Align::offsets, a.offsets = view(kNumbers, {2}); }},
      {"causal", [](A& a) { a.causal = true; }},
      {"window", [](A& a) { a.window.left = 3; }},
      {"window", [](A& a) { a.window.right = 3; }},
      {"mask", [](A& a) { a.mask = view(kMask, {1}); }},
      {"scale", [](A& a) { a.scale = 1 / std::sqrt(8.0); }},  // the default, but said
      {"softcap", [](A& a) { a.softcap = 30; }},
      {"bias", [](A& a) { a.bias = view(kFloats, {9}); }},
      {"alibi_slopes", [](A& a) { a.alibi_slopes = view(kFloats, {4}); }},
      {"sinks", [](A& a) { a.sinks = view(kFloats, {4}); }},
      {"lse", [](A& a) { a.lse = {}; }},
      {"weights", [](A& a) { a.weights = {}; }}};
  for (const auto& [field, change] : changes) {
    AttentionProblemF32 p(kSizes);
    const Planned planned(device_, p.args);
    AttentionArgs args = p.args;
    change(args);
    const Status status = attention(context_, planned.plan, args, planned.workspace());
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << field;
    EXPECT_NE(std::string(status.message()).find(field), std::string::npos) << field << ": " << status.message();
    EXPECT_TRUE(std::isnan(p.out_data[0])) << field;
  }
}

TEST_P(AttentionCalls, APlanForOffsetsRefusesOtherOffsets) {
  static constexpr std::int32_t kNumbers[] = {1, 2, 3, 4};
  AttentionProblemF32 p(kSizes);
  p.args.align = Align::offsets;
  p.args.offsets = view(kNumbers, {2});
  const Planned planned(device_, p.args);
  p.args.offsets.strides[0] = 2;
  EXPECT_EQ(attention(context_, planned.plan, p.args, planned.workspace()).code(), StatusCode::kInvalidArgument);
}

TEST_P(AttentionCalls, APlanRefusesOtherSizesAndDtypes) {
  AttentionProblemF32 p(kSizes);
  const Planned planned(device_, p.args);
  AttentionProblemF32 longer({2, 4, 2, 6, 9, 8, 6});
  EXPECT_EQ(attention(context_, planned.plan, longer.args, planned.workspace()).code(), StatusCode::kInvalidArgument);
  AttentionArgs halves = p.args;
  halves.q.dtype = halves.k.dtype = halves.v.dtype = halves.out.dtype = halves.weights.dtype = DType::f16;
  EXPECT_EQ(attention(context_, planned.plan, halves, planned.workspace()).code(), StatusCode::kInvalidArgument);
}

TEST_P(AttentionCalls, APlanRefusesLessAlignedData) {
  AttentionProblemF32 p(kSizes);
  std::vector<float> storage(p.q_data.size() + 8);
  auto* aligned = reinterpret_cast<float*>((reinterpret_cast<std::uintptr_t>(storage.data()) + 15) / 16 * 16);
  p.args.q.data = aligned;
  const Planned planned(device_, p.args);
  p.args.q.data = aligned + 1;
  const Status status = attention(context_, planned.plan, p.args, planned.workspace());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_STREQ(status.message(), "q has data aligned to 4 bytes, expected 16 as planned");
}

TEST_P(AttentionCalls, AnEmptyPlanIsRefused) {
  AttentionProblemF32 p(kSizes);
  const Status status = attention(context_, AttentionPlan(), p.args, {});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("plan is empty"), std::string::npos);
}

TEST_P(AttentionCalls, AFailedPlanLeavesThePlanAsItWas) {
  AttentionProblemF32 p(kSizes);
  Planned planned(device_, p.args);
  AttentionPlan before;
  std::memcpy(static_cast<void*>(&before), &planned.plan, sizeof before);
  AttentionArgs bad = p.args;
  bad.softcap = -1;
  EXPECT_FALSE(attention_plan(context_, bad, planned.plan).ok());
  EXPECT_FALSE(attention_plan(context_, p.args, planned.plan, {"no_such_kernel"}).ok());
  EXPECT_EQ(std::memcmp(&before, &planned.plan, sizeof before), 0);
}

TEST_P(AttentionCalls, BadWorkspacesAreRefused) {
  AttentionProblemF32 p(kSizes);
  const Planned planned(device_, p.args);
  const std::size_t bytes = planned.plan.workspace_bytes;
  if (bytes == 0) GTEST_SKIP() << "this kernel needs no workspace";
  DeviceArgs there(device_, p.args);
  const auto code = [&](Workspace workspace) {
    return attention(context_, planned.plan, there.args(), workspace).code();
  };
  const DeviceMemory large(device_, bytes + 512);
  EXPECT_EQ(code({large.data(), bytes - 1}), StatusCode::kWorkspaceTooSmall);
  EXPECT_EQ(code({}), StatusCode::kWorkspaceTooSmall);
  EXPECT_EQ(code({nullptr, bytes}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({large.data() + 16, bytes}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({large.data(), ~std::size_t{0}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(there.copy_back(), "");
  EXPECT_TRUE(std::isnan(p.out_data[0]));
  const Status status = attention(context_, planned.plan, there.args(), {large.data(), bytes - 1});
  EXPECT_NE(std::string(status.message()).find(std::to_string(bytes)), std::string::npos) << status.message();
  EXPECT_EQ(code({large.data() + 256, bytes}), StatusCode::kOk);
}

TEST_P(AttentionCalls, AWorkspaceMayOverlapNothing) {
  AttentionProblemF32 p(kSizes);
  const Planned planned(device_, p.args);
  if (planned.plan.workspace_bytes == 0) GTEST_SKIP() << "this kernel needs no workspace";
  GuardedBuffer shared(planned.plan.workspace_bytes + 8192);
  for (const bool output : {true, false}) {
    AttentionProblemF32 inside(kSizes);
    if (output) {
      inside.args.out.data = shared.data() + 64;
    } else {
      inside.args.k.data = shared.data() + 64;
    }
    const Status status = attention(context_, inside.args, {shared.data(), shared.size()});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(std::string(status.message()).find("workspace"), std::string::npos) << status.message();
  }
}

TEST_P(AttentionCalls, TheWorkspaceMayHoldAnythingAndKeepsItsNeighbours) {
  std::vector<float> first;
  for (const int fill : {0x00, 0xFF, 0x7F, 0x5A}) {
    AttentionProblemF32 p(kSizes);
    Planned planned(device_, p.args);
    planned.memory.fill(static_cast<std::byte>(fill));
    DeviceArgs there(device_, p.args);
    ASSERT_TRUE(attention(context_, planned.plan, there.args(), planned.workspace()).ok());
    EXPECT_EQ(there.copy_back(), "");
    EXPECT_TRUE(planned.memory.guards_intact());
    if (first.empty()) first = p.out_data;
    EXPECT_TRUE(same_bits(p.out_data, first));
  }
}

/// By itself: other threads would see the schedules that run() chooses.
bool run_once(const Device& device, AttentionProblemF32& p) {
  const Planned planned(device, p.args);
  DeviceArgs there(device, p.args);
  const bool ok = attention(device.context(), planned.plan, there.args(), planned.workspace()).ok();
  return there.copy_back().empty() && ok;
}

TEST_P(AttentionCalls, DistinctContextsRunInParallel) {
  constexpr int kThreads = 4;
  AttentionProblemF32 expected(kSizes);
  ASSERT_TRUE(expected.run(device_).ok());
  std::vector<int> wrong(kThreads, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const Device mine(GetParam());
      for (int repeat = 0; repeat < 20; ++repeat) {
        AttentionProblemF32 p(kSizes);
        const bool same = run_once(mine, p) && same_bits(p.out_data, expected.out_data) &&
                          same_bits(p.lse_data, expected.lse_data) && same_bits(p.weights_data, expected.weights_data);
        wrong[t] += same ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
}

TEST_P(AttentionCalls, ExplainsAPlanInWords) {
  AttentionProblemF32 p(kSizes);
  const Planned planned(device_, p.args);
  const std::string text = explain(planned.plan).c_str();
  for (const std::string& part : {std::string(planned.plan.kernel), std::string(planned.plan.variant), GetParam(),
                                  std::to_string(planned.plan.workspace_bytes), std::string(planned.plan.reasons)}) {
    EXPECT_NE(text.find(part), std::string::npos) << text << " lacks " << part;
  }
  EXPECT_STREQ(explain(AttentionPlan()).c_str(), "empty plan: attention_plan fills it");
}

TEST_P(AttentionCalls, ForcingAKernelByName) {
  AttentionProblemF32 p(kSizes);
  AttentionPlan plan;
  for (const std::string& kernel : kernel_names(GetParam(), "attention")) {
    const Status status = attention_plan(context_, p.args, plan, {kernel.c_str()});
    if (status.ok()) {
      EXPECT_EQ(plan.kernel, kernel);
    }
    EXPECT_TRUE(status.ok() || status.code() == StatusCode::kUnsupported) << status.message();
  }
}

/// Field case 36: what a device lacks it says; no other device steps in.
TEST_P(AttentionCalls, FieldCase36NoSilentFallback) {
  AttentionProblemF32 p(kSizes);
  AttentionPlan plan;
  const Status status = attention_plan(context_, p.args, plan, {"attention_of_tomorrow"});
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(std::string(status.message()).find("attention_of_tomorrow"), std::string::npos) << status.message();
  EXPECT_NE(std::string(status.message()).find(GetParam()), std::string::npos) << status.message();
  ASSERT_TRUE(attention_plan(context_, p.args, plan).ok());
  EXPECT_EQ(plan.device, GetParam());
}

TEST_P(AttentionCalls, FieldCase36AContextWithoutADeviceComputesNothing) {
  Context moved = device_.another_context();
  const Context taken = std::move(moved);
  EXPECT_EQ(taken.device_name(), GetParam());
  AttentionProblemF32 p(kSizes);
  const Planned planned(device_, p.args);
  const Context none;
  for (const Context* context : {&none, &std::as_const(moved)}) {
    AttentionPlan plan;
    EXPECT_EQ(attention_plan(*context, p.args, plan).code(), StatusCode::kNoDevice);
    EXPECT_EQ(attention(*context, p.args, planned.workspace()).code(), StatusCode::kNoDevice);
    EXPECT_FALSE(attention(*context, planned.plan, p.args, planned.workspace()).ok());
    EXPECT_TRUE(std::isnan(p.out_data[0]));
  }
}

/// A slice of the fuzzer, so that a plain test run has met every feature; `sorot check` does the rest.
TEST_P(AttentionCalls, SixtyRandomCasesMatchTheOracle) {
  for (std::uint64_t index = 0; index < 60; ++index) {
    const AttentionCase c = generate_attention_case(1, index);
    for (const auto& [what, sibling] : with_siblings(c)) {
      const CaseResult result = run_case(device_, PreparedCase(sibling));
      if (!result.served) continue;
      EXPECT_TRUE(result.passed()) << index << ": " << what << result.problem;
    }
    EXPECT_EQ(run_invalid(device_, c, static_cast<std::size_t>(c.invalid)), "") << index;
  }
}

}  // namespace
}  // namespace sorot::support
