#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/ops/devices.h"
#include "tests/support/attention_case.h"
#include "tests/support/attention_problem.h"
#include "tests/support/read_args.h"

/// Cases from the field: scores, softmax and what comes out.
namespace sorot::support {
namespace {

class AttentionScores : public OnEveryDevice {
 protected:
  using OnEveryDevice::expect_oracle;
  void expect_oracle(const AttentionCase& c) {
    const CaseResult result = run_case(device_, PreparedCase(c));
    if (c.dtype == DType::f64 && !result.served) return;  // f64 is the reference's alone
    EXPECT_TRUE(result.passed()) << result.problem << "\n" << to_json(c);
  }
};
SOROT_ON_EVERY_DEVICE(AttentionScores);

constexpr DType kDTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

TEST_P(AttentionScores, FieldCase10LargeNegativeLogits) {
  AttentionProblemF32 p({1, 1, 1, 1, 1, 128, 3});
  for (float& x : p.q_data) x = 448;
  for (float& x : p.k_data) x = -448;
  expect_oracle(p);
  EXPECT_EQ(p.weight(0, 0, 0, 0), 1.0F);
  EXPECT_TRUE(same_bits(p.out_data, p.v_data));
  EXPECT_FLOAT_EQ(p.lse(0, 0, 0), static_cast<float>(-448.0 * 448 * 128 / std::sqrt(128.0)));
}

TEST_P(AttentionScores, FieldCase11ScaleZeroOrNegative) {
  AttentionProblemF32 p({1, 1, 1, 2, 4, 8, 8});
  p.args.causal = true;
  p.args.scale = 0;
  run(p);
  EXPECT_EQ(p.weight(0, 0, 1, 0), 0.5F);
  EXPECT_EQ(p.weight(0, 0, 1, 1), 0.5F);
  EXPECT_EQ(p.weight(0, 0, 1, 2), 0.0F);
  p.args.scale = -1;
  expect_oracle(p);
  // The scale multiplies the product: 0 times an infinite product is NaN, and only where it is attended.
  p.args.scale = 0;
  p.k(0, 0, 1, 0) = -kInf;
  expect_oracle(p);
  EXPECT_TRUE(std::isfinite(p.out(0, 0, 0, 0)));
  EXPECT_TRUE(std::isnan(p.out(0, 0, 1, 0)));
}

TEST_P(AttentionScores, FieldCase13SoftcapActsBeforeTheBias) {
  AttentionProblemF32 p({1, 1, 1, 1, 1, 1, 1});
  p.q_data = {1};
  p.k_data = {2};
  constexpr float kBias[] = {2};
  p.args.bias = view(kBias, {1});
  p.args.softcap = 1;
  run(p);
  EXPECT_NEAR(p.lse(0, 0, 0), std::tanh(2.0) + 2, 1e-6);
}

TEST_P(AttentionScores, FieldCase16ValueDimDiffersFromKeyDim) {
  for (const DType dtype : kDTypes) {
    for (const std::int64_t value_dim : {16, 5, 1, 8}) {
      AttentionCase c;
      c.dtype = dtype;
      c.batch = c.heads = c.kv_heads = c.queries = c.keys = 4;
      c.head_dim = 8;
      c.value_dim = value_dim;
      c.lse = true;
      c.weights = dtype;
      expect_oracle(c);
    }
  }
}

TEST_P(AttentionScores, FieldCase17OddHeadDims) {
  for (const DType dtype : kDTypes) {
    for (const std::int64_t d : {1, 3, 40, 72, 80, 88, 96, 100, 112, 160, 192, 200, 256}) {
      AttentionCase c;
      c.seed = static_cast<std::uint64_t>(d);
      c.dtype = dtype;
      c.heads = c.kv_heads = 2;
      c.queries = 3;
      c.keys = 9;
      c.head_dim = c.value_dim = d;
      c.causal = true;
      c.align = Align::bottom_right;
      expect_oracle(c);
    }
  }
}

TEST_P(AttentionScores, FieldCase18GroupSizes) {
  for (const std::int64_t group : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 71}) {
    for (const std::int64_t kv_heads : {1, 2}) {
      AttentionCase c;
      c.dtype = group % 2 == 0 ? DType::f16 : DType::f32;
      c.batch = 2;
      c.kv_heads = kv_heads;
      c.heads = kv_heads * group;
      c.queries = 2;
      c.keys = 11;
      c.head_dim = c.value_dim = 8;
      expect_oracle(c);
    }
  }
}

TEST_P(AttentionScores, FieldCase24LseUnderGroupedHeads) {
  AttentionProblemF32 p({1, 64, 8, 256, 256, 4, 4});
  p.args.weights = {};
  expect_oracle(p);
}

TEST_P(AttentionScores, FieldCase25WeightsAndOutputAgree) {
  AttentionProblemF32 p({2, 4, 2, 6, 13, 8, 5});
  const float sinks[] = {0.5F, -kInf, 3, -2};
  constexpr std::int32_t kLengths[] = {13, 4};
  p.args.align = Align::bottom_right;
  p.args.causal = true;
  p.args.kv_lengths = view(kLengths, {2});
  p.args.sinks = view(sinks, {4});
  expect_oracle(p);
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t h = 0; h < 4; ++h) {
      for (std::int64_t i = 0; i < 6; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < 13; ++j) sum += static_cast<double>(p.weight(b, h, i, j));
        const bool empty = b == 1 && i < 2;  // two queries stand before the 4 keys of sequence 1
        const double expected = empty ? 0 : 1 - std::exp(static_cast<double>(sinks[h] - p.lse(b, h, i)));
        EXPECT_NEAR(sum, expected, 2e-6);
        if (empty) {
          EXPECT_EQ(p.lse(b, h, i), sinks[h]);
        }
        for (std::int64_t d = 0; d < 5; ++d) {
          double out = 0;
          for (std::int64_t j = 0; j < 13; ++j) {
            out += static_cast<double>(p.weight(b, h, i, j)) * static_cast<double>(p.v(b, h / 2, j, d));
          }
          EXPECT_NEAR(p.out(b, h, i, d), out, 2e-6);
        }
      }
    }
  }
}

/// The LSE has lost ln Z at -1e9; weights come from the row's maximum and sum.
TEST_P(AttentionScores, FieldCase25WeightsDoNotComeFromTheRoundedLse) {
  AttentionProblemF32 p({1, 1, 1, 1, 8, 4, 4});
  constexpr float kBias[] = {-1e9F};
  p.args.bias = view(kBias, {1});
  run(p);
  for (std::int64_t j = 0; j < 8; ++j) EXPECT_FLOAT_EQ(p.weight(0, 0, 0, j), 0.125F);
}

TEST_P(AttentionScores, FieldCase29AccuracyAtScoresOf50AndMore) {
  for (const DType dtype : kDTypes) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      AttentionCase c;
      c.seed = seed;
      c.dtype = dtype;
      c.values = Values::fifty;
      c.batch = 1;
      c.heads = c.kv_heads = 3;
      c.queries = 33;
      c.keys = 130;
      c.head_dim = c.value_dim = 64;
      c.lse = true;
      c.weights = seed % 2 == 0 ? dtype : DType::f32;
      expect_oracle(c);
    }
  }
}

TEST_P(AttentionScores, OneKeyGivesItsValueBitForBit) {
  // Weight exactly 1: subnormals and the largest numbers come through unrounded.
  for (const float x : {1e-45F, 1e-38F, 3.4e38F, -0.1F}) {
    AttentionProblemF32 p({1, 1, 1, 1, 1, 3, 1});
    p.v_data = {x};
    run(p);
    EXPECT_EQ(p.out(0, 0, 0, 0), x);
  }
}

TEST_P(AttentionScores, AScoreBeyondF32IsInfinite) {
  for (const float sign : {1.0F, -1.0F}) {
    AttentionProblemF32 p({1, 1, 1, 2, 2, 1, 1});
    p.q_data = {1e25F, 1};
    p.k_data = {sign * 1e25F, 1};
    expect_oracle(p);
    EXPECT_EQ(std::isnan(p.out(0, 0, 0, 0)), sign > 0);
  }
}

TEST_P(AttentionScores, SinksOnEmptyAndPoisonedRows) {
  for (const float sink : {0.5F, -kInf, kInf, kNan, 1e30F, -1e30F}) {
    for (const bool attended : {true, false}) {
      AttentionProblemF32 p({1, 1, 1, 1, 2, 4, 4});
      const bool mask[] = {attended};
      p.args.mask = view(mask, {1});
      p.args.sinks = view(&sink, {1});
      expect_oracle(p);
    }
  }
}

/// The weighted sum of values near the largest number is a number: weights first, then the sum.
TEST_P(AttentionScores, TheLargestValuesDoNotOverflow) {
  AttentionProblemF32 p({1, 1, 1, 1, 3, 1, 2});
  for (float& v : p.v_data) v = 3.4e38F;
  expect_oracle(p);
  EXPECT_TRUE(std::isfinite(p.out(0, 0, 0, 0)));

  const double q[] = {1};
  const double k[] = {1, 1, 1};
  const double v[] = {1.7e308, 1.7e308, 1.7e308};
  double out[1];
  const Status status = plan_and_run(
      device_, {view(q, {1, 1, 1, 1}), view(k, {1, 1, 3, 1}), view(v, {1, 1, 3, 1}), view(out, {1, 1, 1, 1})});
  if (status.code() == StatusCode::kUnsupported) return;  // f64 is not every device's
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_NEAR(out[0] / 1.7e308, 1, 1e-15);
}

TEST_P(AttentionScores, AllScoresMinusInfinityIsAnEmptyRowWhateverVHolds) {
  AttentionProblemF32 p({1, 1, 1, 1, 2, 1, 2});
  p.q_data = {1};
  p.k_data = {-kInf, -kInf};
  p.v_data = {kNan, 1, 2, kInf};
  expect_oracle(p);
  EXPECT_EQ(p.out(0, 0, 0, 0), 0.0F);
  EXPECT_EQ(p.weight(0, 0, 0, 1), 0.0F);
  EXPECT_EQ(p.lse(0, 0, 0), -kInf);
}

}  // namespace
}  // namespace sorot::support
