#pragma once

#include <gtest/gtest.h>

#include <string>

#include "sorot/context.h"
#include "tests/support/attention_problem.h"
#include "tests/support/read_args.h"
#include "tests/support/run_case.h"

namespace sorot::support {

/// Tests that hold on every device of this build.
class OnEveryDevice : public testing::TestWithParam<std::string> {
 protected:
  void run(AttentionProblemF32& problem) {
    const Status status = problem.run(context_);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  void expect_oracle(AttentionProblemF32& problem) {
    run(problem);
    EXPECT_EQ(judge_call(problem.args).what, "");
  }

  Context context_ = make_context(GetParam());
};

}  // namespace sorot::support

/// Runs the tests of a suite derived from OnEveryDevice on each device.
#define SOROT_ON_EVERY_DEVICE(Suite)                                                          \
  INSTANTIATE_TEST_SUITE_P(Devices, Suite, testing::ValuesIn(sorot::support::device_names()), \
                           [](const auto& test) { return test.param; })
