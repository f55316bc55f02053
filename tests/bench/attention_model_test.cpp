#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <string>

#include "bench/attention_counts.h"
#include "bench/attention_model.h"

/// What the time model is made of: numbers put together from smaller problems are those of the whole problem.
namespace sorot::bench {
namespace {

AttentionCase sized(DType dtype, std::int64_t heads, std::int64_t kv_heads, std::int64_t queries, std::int64_t keys,
                    std::int64_t dim) {
  AttentionCase c;
  c.name = "counted";
  c.dtype = dtype;
  c.batch = 2;
  c.heads = heads;
  c.kv_heads = kv_heads;
  c.queries = queries;
  c.keys = keys;
  c.dim = dim;
  return c;
}

void expect_parts_make_the_whole(const AttentionCase& c, const char* kernel) {
  for (const int compute_capability : {80, 90}) {
    SCOPED_TRACE("sm_" + std::to_string(compute_capability));
    EXPECT_STREQ(plan_on_gpu(c, compute_capability).kernel, kernel);
    const AttentionCounts whole = count(c, compute_capability);
    const AttentionCounts parts = count_by_parts(c, compute_capability);
    EXPECT_NEAR(parts.mma, whole.mma, 1e-9 * whole.mma);
    EXPECT_NEAR(parts.shared_wavefronts, whole.shared_wavefronts, 1e-9 * whole.shared_wavefronts);
    EXPECT_NEAR(parts.asked_bytes, whole.asked_bytes, 1e-9 * whole.asked_bytes);
    EXPECT_NEAR(parts.blocks, whole.blocks, 1e-9 * whole.blocks);
  }
}

TEST(AttentionCounts, OfLongSequences) {
  expect_parts_make_the_whole(sized(DType::f16, 1, 1, 768, 768, 64), "attention_sm80_plain");
}

TEST(AttentionCounts, OfLongCausalSequences) {
  AttentionCase c = sized(DType::bf16, 2, 1, 640, 640, 128);
  c.causal = true;
  expect_parts_make_the_whole(c, "attention_sm80_plain");
}

TEST(AttentionCounts, OfDecoding) {
  AttentionCase c = sized(DType::bf16, 8, 2, 1, 2048, 64);
  c.causal = true;
  c.align = Align::bottom_right;
  expect_parts_make_the_whole(c, "attention_simt");
}

/// Too short to be cut: only the heads are.
TEST(AttentionCounts, OfManyHeads) {
  expect_parts_make_the_whole(sized(DType::f32, 6, 3, 100, 70, 32), "attention_simt");
}

/// Every fragment of products is counted: 16 x 8 x 16 multiply-adds each.
TEST(AttentionCounts, ProductsOfWholeTiles) {
  const AttentionCase c = sized(DType::f16, 2, 2, 128, 256, 64);
  const double multiply_adds = 2.0 * 2 * 128 * 256 * (64 + 64);
  EXPECT_DOUBLE_EQ(count(c, 80).mma, multiply_adds / (16 * 8 * 16));
}

/// Tiles of 2 rows and 4 keys over 3 queries of 2 heads a group, 5 keys: rows 0-1, 2 with the next head's 0, 1-2.
TEST(AttentionModel, MultiplyAddsOfTiles) {
  AttentionCase c = sized(DType::f32, 4, 2, 3, 5, 8);
  AttentionPlan plan;
  plan.tile_queries = 2;
  plan.tile_keys = 4;
  const double of_a_tile = 2.0 * 4 * (8 + 64) / 32;
  EXPECT_DOUBLE_EQ(simt_multiply_adds(c, plan), 2 * 2 * (3 * 2) * of_a_tile);
  c.causal = true;
  c.align = Align::bottom_right;  // rows see 3, 4, 5 keys: 1, 2 and 2 tiles
  EXPECT_DOUBLE_EQ(simt_multiply_adds(c, plan), 2 * 2 * (1 + 2 + 2) * of_a_tile);
}

/// The terms of a case, by hand: 2 heads of one block each on the 108 SMs of an A100.
TEST(AttentionModel, PutsCountersAndMachineCodeTogether) {
  std::istringstream table("kernel,arch,pass,loop,mufu\n\"attention_sm80<float16, 1ul, false>\",80,128 HMMA,4,0.5\n");
  AttentionCase c = sized(DType::f16, 1, 1, 128, 256, 64);
  const Gpu& gpu = gpu_of("a100");
  const ModelledAttention m = model_attention(c, gpu, MachineCode(table));
  const double mma_of_a_block = 128.0 * 256 * (64 + 64) / (16 * 8 * 16);
  EXPECT_EQ(m.kernel, "attention_sm80_plain");
  EXPECT_EQ(m.variant, "f16 128x64 d64");
  EXPECT_DOUBLE_EQ(m.counts.blocks, 2);
  EXPECT_DOUBLE_EQ(m.times.mma, mma_of_a_block * 2 / 1410);
  EXPECT_DOUBLE_EQ(m.times.issue, mma_of_a_block / 1410);
  EXPECT_DOUBLE_EQ(m.times.memory, attention_bytes(c) / 2.039e6);
  EXPECT_DOUBLE_EQ(m.counts.bytes, m.asked_bytes);  // one block a head: nothing is read twice
}

}  // namespace
}  // namespace sorot::bench
