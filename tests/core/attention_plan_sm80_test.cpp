#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "cuda/attention/attention_plan.h"
#include "tests/core/attention_plan_problems.h"

/// What attention_plan chooses of attention_sm80, and between the kernels.
namespace sorot::cuda {
namespace {

AttentionSm80Plan planned(const core::AttentionProblem& p, const core::CudaDevice& on, bool general = false) {
  AttentionSm80Plan plan;
  const Status status = plan_attention_sm80(p, on, general, plan);
  EXPECT_TRUE(status.ok()) << status.message();
  return plan;
}

std::string choice(const core::AttentionProblem& p, const core::CudaDevice& on) {
  char reason[200];
  return choose_attention_kernel(p, on, reason, sizeof reason);
}

class EveryTensorCore : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(AttentionPlanSm80, EveryTensorCore, testing::Values(80, 86, 90, 100, 120),
                         [](const auto& profile) { return "sm" + std::to_string(profile.param); });

TEST_P(EveryTensorCore, LaunchesOnlyWhatTheDeviceCan) {
  const core::CudaDevice on = device(GetParam());
  for (const bool general : {false, true}) {
    for (const DType dtype : {DType::f16, DType::bf16}) {
      for (const std::int64_t dim : {8, 32, 40, 64, 72, 96, 128, 136, 192, 200, 256}) {
        for (const std::int64_t value_dim : {dim, std::int64_t{128}}) {
          for (const std::int64_t queries : {1, 64, 65, 128, 129, 4096}) {
            const AttentionSm80Plan plan =
                planned(problem({2, 8, 4, queries, 1000, dim, value_dim}, dtype), on, general);
            const Sm80Tile& tile = kSm80Tiles[plan.tile];
            EXPECT_GE(tile.head_dim, dim);
            EXPECT_GE(tile.value_dim, value_dim);
            EXPECT_LE(sm80_shared_bytes(tile, general), static_cast<std::size_t>(on.shared_bytes_per_block));
            EXPECT_EQ(plan.blocks, plan.rows.row_blocks * plan.rows.heads);
            EXPECT_GE(plan.blocks * tile.queries, 2 * 8 * queries);
            const std::string head =
                std::string(name(dtype)) + " " + std::to_string(tile.queries) + "x64 d" + std::to_string(tile.head_dim);
            EXPECT_EQ(std::string(plan.variant).substr(0, head.size()), head);
          }
        }
      }
    }
  }
}

/// Of every D the smallest tile, and of 192 and 256 what the shared memory of a block allows.
TEST_P(EveryTensorCore, TheSmallestTileThatFits) {
  const core::CudaDevice on = device(GetParam());
  const auto variant = [&](std::int64_t dim, std::int64_t value_dim, bool general) {
    return std::string(planned(problem({1, 8, 8, 1024, 1024, dim, value_dim}), on, general).variant);
  };
  const bool small = GetParam() == 86 || GetParam() == 120;
  EXPECT_EQ(variant(32, 32, false), "f16 128x64 d32");
  EXPECT_EQ(variant(64, 64, false), "f16 128x64 d64");
  EXPECT_EQ(variant(80, 80, false), "f16 128x64 d96");
  EXPECT_EQ(variant(128, 128, false), "f16 128x64 d128");
  EXPECT_EQ(variant(64, 128, false), "f16 128x64 d128") << "the tile of the larger of D and Dv";
  EXPECT_EQ(variant(192, 128, false), "f16 128x64 d192 dv128");
  EXPECT_EQ(variant(192, 192, false), "f16 128x64 d192");
  EXPECT_EQ(variant(256, 256, false), small ? "f16 64x64 d256" : "f16 128x64 d256");
  EXPECT_EQ(variant(32, 32, true), "f16 128x64 d64") << "the general kernel has fewer tiles";
  EXPECT_EQ(variant(192, 192, true), small ? "f16 64x64 d256" : "f16 128x64 d192");
}

TEST(AttentionPlanSm80, ShortHeadsOfAGroupShareABlock) {
  const core::CudaDevice on = device(90);
  const AttentionSm80Plan shared = planned(problem({4, 32, 4, 16, 4096, 128, 128}), on);
  EXPECT_TRUE(shared.rows.packed);
  EXPECT_EQ(shared.blocks, 4 * 4) << "16 queries of 8 heads are 128 rows";
  const AttentionSm80Plan few = planned(problem({4, 32, 4, 8, 4096, 128, 128}), on);
  EXPECT_EQ(kSm80Tiles[few.tile].queries, 64);
  const AttentionSm80Plan long_heads = planned(problem({4, 32, 4, 128, 4096, 128, 128}), on);
  EXPECT_FALSE(long_heads.rows.packed);
  EXPECT_EQ(long_heads.blocks, 4 * 32);
}

TEST(AttentionPlanSm80, LongCausalRowsComeFirst) {
  const core::CudaDevice on = device(80);
  core::AttentionProblem p = problem({1, 8, 8, 1024, 1024, 64, 64});
  EXPECT_FALSE(planned(p, on).long_first);
  p.window_right = 0;
  EXPECT_TRUE(planned(p, on).long_first);
}

TEST(AttentionPlanSm80, ChoosesByFeaturesRowsAndSplits) {
  const core::CudaDevice on = device(90);
  core::AttentionProblem p = problem({2, 8, 8, 512, 512, 64, 64});
  EXPECT_EQ(choice(p, on), kAttentionSm80Plain);
  EXPECT_EQ(choice(p, device(75)), kAttentionSimt);
  EXPECT_EQ(choice(problem({2, 8, 8, 512, 512, 64, 64}, DType::f32), on), kAttentionSimt);
  EXPECT_EQ(choice(problem({2, 8, 8, 512, 512, 60, 64}), on), kAttentionSimt) << "rows of 120 bytes";
  EXPECT_EQ(choice(problem({64, 8, 8, 1, 4096, 128, 128}), on), kAttentionSimt)
      << "decoding reads K and V, that is all";
  EXPECT_EQ(choice(problem({1, 1, 1, 16, 65536, 128, 128}), on), kAttentionSimt) << "one block would do it all";
  p.softcap = 30;
  EXPECT_EQ(choice(p, on), kAttentionSm80General);
  p = problem({2, 8, 8, 512, 512, 64, 64});
  p.scale = 0;
  EXPECT_EQ(choice(p, on), kAttentionSm80General);
  p.scale = -1;
  EXPECT_EQ(choice(p, on), kAttentionSm80General);
  p.scale = 0.125;
  p.k.strides[3] = 2;
  EXPECT_EQ(choice(p, on), kAttentionSimt);
}

TEST(AttentionPlanSm80, RefusesWhatItCannotServe) {
  const auto refused = [](const core::AttentionProblem& p, const core::CudaDevice& on, const char* word) {
    AttentionSm80Plan plan;
    const Status status = plan_attention_sm80(p, on, false, plan);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_NE(std::string(status.message()).find(word), std::string::npos) << status.message();
    EXPECT_EQ(plan.variant, nullptr) << "a refused plan is left as it was";
  };
  const Shape shape{1, 2, 2, 64, 64, 64, 64};
  refused(problem(shape), device(75), "7.5");
  refused(problem(shape, DType::f32), device(90), "f16 and bf16");
  refused(problem({1, 2, 2, 64, 64, 264, 64}), device(90), "256");
  refused(problem({1, 2, 2, 64, 64, 64, 12}), device(90), "multiple of 8");
  refused(problem({1, 2, 2, 64, 0, 64, 64}), device(90), "Skv = 0");
  core::AttentionProblem p = problem(shape);
  p.v = tensor(DType::f16, {1, 2, 64, 64}, 4096 + 2);
  refused(p, device(90), "16-byte");
  p = problem(shape);
  p.mask = tensor(DType::boolean, {1, 2, 64, 64});
  refused(p, device(90), "a mask");
  EXPECT_TRUE(planned(p, device(90), true).mask_vectors);
  core::CudaDevice tiny = device(90);
  tiny.shared_bytes_per_block = 16 * 1024;
  refused(problem(shape), tiny, "16384");
}

TEST(AttentionPlanSm80, OutDoesNotDependOnWhatElseIsWanted) {
  core::AttentionProblem p = problem({1, 8, 8, 200, 300, 128, 128});
  const AttentionSm80Plan alone = planned(p, device(90));
  EXPECT_EQ(alone.workspace_bytes, 0U);
  p.weights = tensor(DType::f16, {1, 8, 200, 300});
  const AttentionSm80Plan with = planned(p, device(90));
  EXPECT_EQ(with.tile, alone.tile);
  EXPECT_EQ(with.blocks, alone.blocks);
  EXPECT_EQ(with.workspace_bytes, 8U * 200 * 16);
  EXPECT_EQ(with.weights_blocks, 8 * 2 * 5);
}

}  // namespace
}  // namespace sorot::cuda
