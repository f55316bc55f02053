#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sorot/context.h"
#include "tests/support/attention_problem.h"
#include "tests/support/device.h"
#include "tests/support/read_args.h"
#include "tests/support/run_case.h"

namespace sorot::support {

/// Tests that hold on every device of this build, and are run on those that this machine has.
class OnEveryDevice : public testing::TestWithParam<std::string> {
 protected:
  void run(AttentionProblemF32& problem) {
    const Status status = problem.run(device_);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  void expect_oracle(AttentionProblemF32& problem) {
    run(problem);
    EXPECT_EQ(judge_call(problem.args).what, "");
  }

  Device device_{GetParam()};
  const Context& context_ = device_.context();
};

/// "cuda", if this build and this machine have it.
inline std::vector<std::string> cuda_devices() {
  std::vector<std::string> names = device_names();
  std::erase_if(names, [](const std::string& name) { return Device(name).on_host(); });
  return names;
}

}  // namespace sorot::support

/// Runs the tests of a suite derived from OnEveryDevice on CUDA alone; none, where there is none.
#define SOROT_ON_CUDA(Suite)                                                                  \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Suite);                                       \
  INSTANTIATE_TEST_SUITE_P(Devices, Suite, testing::ValuesIn(sorot::support::cuda_devices()), \
                           [](const auto& test) { return test.param; })

/// Runs the tests of a suite derived from OnEveryDevice on each device.
#define SOROT_ON_EVERY_DEVICE(Suite)                                                          \
  INSTANTIATE_TEST_SUITE_P(Devices, Suite, testing::ValuesIn(sorot::support::device_names()), \
                           [](const auto& test) { return test.param; })
