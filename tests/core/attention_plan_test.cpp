#include "cuda/attention/attention_plan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/core/attention_plan_problems.h"

/// What attention_plan chooses of attention_simt.
namespace {

using sorot::DType;
using sorot::StatusCode;
using sorot::core::AttentionProblem;
using sorot::core::CudaDevice;
using sorot::cuda::AttentionSimtPlan;
using sorot::cuda::device;
using sorot::cuda::plan_attention_simt;
using sorot::cuda::problem;
using sorot::cuda::Shape;
using sorot::cuda::simt_shared_bytes;
using sorot::cuda::tensor;
using sorot::tile::LoadPath;

AttentionSimtPlan planned(const AttentionProblem& p, const CudaDevice& on) {
  AttentionSimtPlan plan;
  const sorot::Status status = plan_attention_simt(p, on, plan);
  EXPECT_TRUE(status.ok()) << status.message();
  return plan;
}

class EveryProfile : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(AttentionPlan, EveryProfile, testing::Values(75, 80, 86, 90, 100, 120),
                         [](const auto& profile) { return "sm" + std::to_string(profile.param); });

TEST_P(EveryProfile, LaunchesOnlyWhatTheDeviceCan) {
  const CudaDevice on = device(GetParam());
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t dim : {1, 40, 64, 65, 128, 129, 256}) {
      for (const std::int64_t queries : {1, 8, 9, 64, 65, 4096}) {
        const AttentionProblem p = problem({2, 8, 8, queries, 1000, dim, dim}, dtype);
        const AttentionSimtPlan plan = planned(p, on);
        EXPECT_GE(plan.tile.head_dim, dim);
        EXPECT_LE(simt_shared_bytes(plan.tile), static_cast<std::size_t>(on.shared_bytes_per_block));
        EXPECT_EQ(plan.tile.few_rows, queries <= 8);
        EXPECT_GE(plan.row_blocks * plan.tile.queries, queries);
        EXPECT_EQ(plan.blocks, 16 * plan.row_blocks * plan.splits);
        EXPECT_EQ(plan.workspace_bytes > 0, plan.splits > 1);
        const std::string variant = std::string(name(dtype)) + " " + std::to_string(plan.tile.queries) + "x" +
                                    std::to_string(plan.tile.keys) + " d" + std::to_string(plan.tile.head_dim);
        EXPECT_EQ(plan.variant, variant);
      }
    }
  }
}

TEST_P(EveryProfile, DecodingSplitsTheKeysUntilTheDeviceIsFull) {
  const CudaDevice on = device(GetParam());
  const AttentionSimtPlan plan = planned(problem({1, 8, 8, 1, 32768, 128, 128}), on);
  EXPECT_GT(plan.splits, 1);
  EXPECT_GE(plan.blocks, on.multiprocessors - 8);
  EXPECT_LE(plan.splits, 64);
  EXPECT_EQ(planned(problem({1, 8, 8, 1, 127, 128, 128}), on).splits, 1) << "two tiles are not worth a merge";
}

TEST_P(EveryProfile, EnoughRowsAreNotSplit) {
  const CudaDevice on = device(GetParam());
  EXPECT_EQ(planned(problem({4, 32, 8, 4096, 4096, 128, 128}), on).splits, 1);
  EXPECT_EQ(planned(problem({512, 8, 8, 1, 32768, 128, 128}), on).splits, 1);
}

TEST(AttentionPlan, HeadsOfAGroupSharePackedRows) {
  const CudaDevice on = device(90);
  const AttentionSimtPlan decode = planned(problem({4, 32, 4, 1, 4096, 128, 128}), on);
  EXPECT_EQ(decode.rows, 8);
  EXPECT_EQ(decode.row_blocks, 1);
  EXPECT_TRUE(decode.tile.few_rows);
  const AttentionSimtPlan wide = planned(problem({4, 32, 4, 3, 4096, 128, 128}), on);
  EXPECT_EQ(wide.rows, 24);
  EXPECT_EQ(wide.row_blocks, 1);
  EXPECT_FALSE(wide.tile.few_rows);
}

TEST(AttentionPlan, ANarrowWindowIsNotSplit) {
  AttentionProblem p = problem({1, 8, 8, 1, 32768, 128, 128});
  p.window_left = 100;
  p.window_right = 0;
  EXPECT_EQ(planned(p, device(90)).splits, 1);
}

TEST(AttentionPlan, OutDoesNotDependOnWhatElseIsWanted) {
  const CudaDevice on = device(90);
  AttentionProblem p = problem({1, 8, 8, 1, 4096, 128, 128});
  const AttentionSimtPlan plain = planned(p, on);
  p.weights = tensor(DType::f16, {1, 8, 1, 4096});
  p.lse = tensor(DType::f32, {1, 8, 1});
  const AttentionSimtPlan with_weights = planned(p, on);
  EXPECT_EQ(with_weights.splits, plain.splits);
  EXPECT_EQ(with_weights.tile.queries, plain.tile.queries);
  EXPECT_EQ(with_weights.workspace_bytes, plain.workspace_bytes + 256) << "m and Z of 8 rows";
  EXPECT_EQ(with_weights.weights_blocks, 8 * (4096 / with_weights.weights_tile.keys));
}

TEST(AttentionPlan, WorkspaceDoesNotDependOnPointers) {
  AttentionProblem p = problem({1, 1, 1, 2, 0, 64, 64});
  p.weights = tensor(DType::f16, {1, 1, 2, 0}, 0);
  const std::size_t without_data = planned(p, device(90)).workspace_bytes;
  p.weights.data = p.out.data;
  EXPECT_EQ(planned(p, device(90)).workspace_bytes, without_data);
}

TEST(AttentionPlan, VectorsNeedAlignedWholeRows) {
  const CudaDevice on = device(90);
  const Shape shape{2, 4, 4, 100, 100, 64, 64};
  AttentionProblem p = problem(shape);
  EXPECT_EQ(planned(p, on).q_path, LoadPath::vectors);
  EXPECT_TRUE(planned(p, on).out_vectors);

  p.q = tensor(DType::f16, {2, 4, 100, 64}, 4096 + 8);
  p.out = tensor(DType::f16, {2, 4, 100, 64}, 4096 + 8);
  EXPECT_EQ(planned(p, on).q_path, LoadPath::along_columns);
  EXPECT_TRUE(planned(p, on).out_vectors) << "four halves are 8 bytes";
  EXPECT_EQ(planned(p, on).k_path, LoadPath::vectors);

  p = problem(shape);
  p.k = tensor(DType::f16, {2, 4, 64, 100}).permute({0, 1, 3, 2});
  EXPECT_EQ(planned(p, on).k_path, LoadPath::along_rows);
  p.k = tensor(DType::f16, {2, 4, 100, 65}).slice(3, 0, 64);
  EXPECT_EQ(planned(p, on).k_path, LoadPath::along_columns);
  p.k = tensor(DType::f16, {2, 1, 1, 64}).expand(1, 4).expand(2, 100);
  EXPECT_EQ(planned(p, on).k_path, LoadPath::vectors) << "stride 0 is a multiple of everything";
  EXPECT_EQ(planned(problem({2, 4, 4, 100, 100, 60, 60}), on).q_path, LoadPath::along_columns);
  EXPECT_EQ(planned(problem({2, 4, 4, 100, 100, 60, 60}, DType::f32), on).q_path, LoadPath::vectors);

  p = problem({1, 3, 3, 1, 100, 64, 64});
  p.q.strides[0] = 7;
  EXPECT_EQ(planned(p, on).q_path, LoadPath::vectors) << "the stride of a single batch is never used";
}

TEST(AttentionPlan, RefusesWhatItCannotServe) {
  const auto refused = [](const AttentionProblem& p, const CudaDevice& on, const char* word) {
    AttentionSimtPlan plan;
    const sorot::Status status = plan_attention_simt(p, on, plan);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_NE(std::string(status.message()).find(word), std::string::npos) << status.message();
    EXPECT_EQ(plan.variant, nullptr) << "a refused plan is left as it was";
  };
  refused(problem({1, 1, 1, 1, 1, 64, 64}, DType::f64), device(90), "f64");
  refused(problem({1, 1, 1, 1, 1, 257, 64}), device(90), "257");
  refused(problem({1, 1, 1, 1, 1, 64, 300}), device(90), "300");
  CudaDevice small = device(75);
  small.shared_bytes_per_block = 48 * 1024;
  refused(problem({1, 1, 1, 64, 1, 64, 64}), small, "49152");
}

TEST(AttentionPlan, AGridHasAtMost2To31Blocks) {
  constexpr std::int64_t kMost = 0x7FFF'FFFF;
  EXPECT_EQ(planned(problem({kMost, 1, 1, 1, 1, 1, 1}), device(90)).blocks, kMost);
  AttentionSimtPlan plan;
  const AttentionProblem p = problem({kMost + 1, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(plan_attention_simt(p, device(90), plan).code(), StatusCode::kUnsupported);
  EXPECT_EQ(planned(problem({1, 1, 1, kMost, 1, 1, 1}), device(90)).blocks, (kMost + 63) / 64);

  AttentionProblem weighty = problem({1, 8192, 8192, 65536, 65536, 64, 64});
  EXPECT_EQ(planned(weighty, device(90)).blocks, 8192 * 1024);
  weighty.weights = tensor(DType::f16, {1, 8192, 65536, 65536});
  EXPECT_EQ(plan_attention_simt(weighty, device(90), plan).code(), StatusCode::kUnsupported);
}

}  // namespace
