#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

#include "cuda/emulator/control.h"
#include "sorot/sorot.h"
#include "tests/ops/devices.h"
#include "tests/support/attention_problem.h"
#include "tests/support/device_args.h"

/// Opening devices, and which device a plan is good for.
namespace sorot::support {
namespace {

Status open(int ordinal, Context& context) { return Context::cuda(ordinal, nullptr, context); }

TEST(ContextTest, CudaIsThereOrSaysWhyNot) {
  Context context;
  const Status status = open(0, context);
  if (status.ok()) {
    EXPECT_STREQ(context.device_name(), "cuda");
    const Context moved = std::move(context);
    EXPECT_STREQ(moved.device_name(), "cuda");
    return;
  }
  EXPECT_EQ(status.code(), StatusCode::kNoDevice) << status.message();
  EXPECT_STREQ(context.device_name(), "none") << "a failure leaves the context as it was";
  EXPECT_FALSE(std::string(status.message()).empty());
  Context kept = Context::reference();
  EXPECT_FALSE(open(0, kept).ok());
  EXPECT_STREQ(kept.device_name(), "reference");
}

TEST(ContextTest, AnOrdinalBeyondTheDevicesIsRefused) {
  Context context = Context::reference();
  if (!Device::probe("cuda").ok()) GTEST_SKIP() << "no CUDA device here";
  for (const int ordinal : {-1, 1000, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    const Status status = open(ordinal, context);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(std::string(status.message()).find(std::to_string(ordinal)), std::string::npos) << status.message();
    EXPECT_STREQ(context.device_name(), "reference");
  }
}

TEST(ContextTest, APlanIsForOneModelOfDevice) {
  if constexpr (!kEmulated) {
    GTEST_SKIP() << "one model of device here";
  } else {
    AttentionProblemF32 p({1, 2, 2, 20, 30, 16, 16});
    emulator::Settings settings;
    settings.profile = 80;
    const emulator::Scoped ampere(settings);
    const Device device("cuda");
    const Device same("cuda");
    DeviceArgs there(device, p.args);
    AttentionPlan plan;
    ASSERT_TRUE(attention_plan(device.context(), there.args(), plan).ok());
    const DeviceMemory workspace(device, plan.workspace_bytes);
    EXPECT_TRUE(attention(same.context(), plan, there.args(), workspace.workspace()).ok());

    settings.profile = 75;
    const emulator::Scoped turing(settings);
    const Device other("cuda");
    const Status status = attention(other.context(), plan, there.args(), workspace.workspace());
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_STREQ(status.message(), "plan was made for another model of cuda device than this one");
    const Status elsewhere = attention(Context::reference(), plan, there.args(), workspace.workspace());
    EXPECT_STREQ(elsewhere.message(), "plan was made for device cuda, not for reference");
  }
}

}  // namespace
}  // namespace sorot::support
