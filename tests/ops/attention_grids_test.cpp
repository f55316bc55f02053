#include <gtest/gtest.h>

#include <vector>

#include "cuda/emulator/control.h"
#include "cuda/machine/runtime.h"
#include "tests/ops/devices.h"
#include "tests/support/attention_problem.h"
#include "tests/support/device_args.h"
#include "tests/support/read_args.h"

/// Field case 23 on CUDA: grids past 65535 and offsets past 2^31, by the record of launches and by sparse tensors.
namespace sorot::support {
namespace {

class AttentionGrids : public OnEveryDevice {};
SOROT_ON_CUDA(AttentionGrids);

constexpr std::uint64_t kMostBlocksY = 65'535;  ///< of the second and third dimension of a grid, on every GPU

/// A call of which only the launches matter: one block a (b, h) and more, and no dimension beyond what GPUs have.
void expect_grid(const Device& device, AttentionProblemF32::Sizes sizes) {
  if constexpr (kEmulated) {
    AttentionProblemF32 p(sizes);
    p.args.weights = {};
    emulator::clear_launches();
    AttentionPlan plan;
    ASSERT_TRUE(attention_plan(device.context(), p.args, plan).ok());
    DeviceArgs there(device, p.args);
    const DeviceMemory workspace(device, plan.workspace_bytes);
    const Status status = attention(device.context(), plan, there.args(), workspace.workspace());
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(there.copy_back(), "");
    EXPECT_EQ(judge_call(p.args).what, "");
    const std::vector<emulator::LaunchRecord> launches = emulator::launches();
    ASSERT_FALSE(launches.empty());
    for (const emulator::LaunchRecord& launch : launches) {
      EXPECT_LE(launch.grid[1], kMostBlocksY) << launch.kernel;
      EXPECT_LE(launch.grid[2], kMostBlocksY) << launch.kernel;
    }
    const auto heads = static_cast<std::uint64_t>(sizes.batch * sizes.kv_heads);
    const auto& grid = launches.front().grid;
    EXPECT_GE(std::uint64_t{grid[0]} * grid[1] * grid[2], heads) << "fewer blocks than kv heads";
  }
}

TEST_P(AttentionGrids, FieldCase23MoreThan65535Heads) { expect_grid(device_, {7, 10'000, 10'000, 1, 1, 1, 1}); }
TEST_P(AttentionGrids, FieldCase23MoreThan65535HeadsInGroups) { expect_grid(device_, {1, 70'000, 1'000, 1, 1, 1, 1}); }

/// One tensor after the other with sequences 2^30 elements apart, so that the last one begins at element 2^31: 8 GiB on
/// the device, of which a few rows are copied. The emulator takes no more than what is touched.
TEST_P(AttentionGrids, FieldCase23BatchStridesPast2To31Elements) {
  constexpr std::int64_t kStride = std::int64_t{1} << 30;
  constexpr std::int64_t kBatch = 3;
  constexpr AttentionProblemF32::Sizes kSizes{kBatch, 1, 1, 2, 3, 8, 4};
  AttentionProblemF32 expected(kSizes);
  run(expected);
  DeviceMemory memory(device_, (static_cast<std::size_t>((kBatch - 1) * kStride) + 64) * sizeof(float));
  const auto spread = [&](auto& tensor, const std::vector<float>& data, bool output) {
    const auto row = data.size() / kBatch;
    for (std::size_t b = 0; b < kBatch && !output; ++b) {
      memory.write(b * kStride * sizeof(float), data.data() + b * row, row * sizeof(float));
    }
    tensor.data = memory.data();
    tensor.strides[0] = kStride;
  };
  for (int n = 0; n < 5; ++n) {
    AttentionProblemF32 p(kSizes);
    DeviceArgs there(device_, p.args);
    AttentionArgs args = there.args();
    std::vector<float>* output = n == 3 ? &p.out_data : n == 4 ? &p.weights_data : nullptr;
    switch (n) {
      case 0: spread(args.q, p.q_data, false); break;
      case 1: spread(args.k, p.k_data, false); break;
      case 2: spread(args.v, p.v_data, false); break;
      case 3: spread(args.out, p.out_data, true); break;
      default: spread(args.weights, p.weights_data, true); break;
    }
    AttentionPlan plan;
    ASSERT_TRUE(attention_plan(context_, args, plan).ok());
    const DeviceMemory workspace(device_, plan.workspace_bytes);
    const Status status = attention(context_, plan, args, workspace.workspace());
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(there.copy_back(), "");
    if (output != nullptr) {
      const auto row = output->size() / kBatch;
      for (std::size_t b = 0; b < kBatch; ++b) {
        memory.read(b * kStride * sizeof(float), output->data() + b * row, row * sizeof(float));
      }
    }
    EXPECT_TRUE(same_bits(p.out_data, expected.out_data)) << "tensor " << n;
    EXPECT_TRUE(same_bits(p.weights_data, expected.weights_data)) << "tensor " << n;
  }
}

}  // namespace
}  // namespace sorot::support
