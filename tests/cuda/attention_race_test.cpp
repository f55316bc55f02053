#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "cuda/emulator/control.h"
#include "sorot/sorot.h"
#include "tests/support/attention_generator.h"
#include "tests/support/attention_tensors.h"
#include "tests/support/device.h"
#include "tests/support/device_args.h"
#include "tests/support/run_case.h"

/// The attention kernels in race mode, compiled so that it sees every access of theirs to shared and global memory,
/// also those that go past the machine's wrappers.
namespace sorot::support {
namespace {

TEST(AttentionRaces, NoneInCasesOfTheFuzzer) {
  constexpr std::uint64_t kCases = 48;
  const Device device("cuda");
  for (const std::string& kernel : kernel_names("cuda", "attention")) {
    std::uint64_t served = 0;
    for (std::uint64_t index = 0; index < kCases; ++index) {
      // Some kernels serve a sibling of the case only: one case in four has them all.
      std::vector<Sibling> siblings = with_siblings(generate_attention_case(7, index));
      const AttentionTensors tensors(siblings[index % siblings.size()].description);
      const DeviceArgs there(device, tensors.args());
      emulator::Settings settings;
      settings.race = true;
      settings.order = index % 3 == 0   ? emulator::Order::forward
                       : index % 3 == 1 ? emulator::Order::reverse
                                        : emulator::Order::random;
      settings.seed = index;
      const emulator::Scoped scoped(settings);
      AttentionPlan plan;
      if (!attention_plan(device.context(), tensors.args(), plan, PlanHint{kernel.c_str()}).ok()) continue;
      const DeviceMemory workspace(device, plan.workspace_bytes);
      const Status status = attention(device.context(), plan, there.args(), workspace.workspace());
      EXPECT_TRUE(status.ok()) << "case 7:" << index << ", " << kernel << ": " << emulator::last_report();
      served += status.ok() ? 1U : 0U;
    }
    EXPECT_GT(served, 0U) << kernel;
  }
}

}  // namespace
}  // namespace sorot::support
