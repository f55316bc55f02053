#include "tests/support/tolerance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/attention_case.h"
#include "tests/support/attention_tensors.h"

namespace sorot::support {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kHeadDim = 64;

TEST(HeadTolerance, IsTwicePlainPlusTheFloor) {
  const HeadTolerance half = head_tolerance(DType::f16, {1e-4, 5e-5}, 3, 2, kHeadDim);
  EXPECT_DOUBLE_EQ(half.max, 2e-4 + 2 * 0x1p-10);
  EXPECT_DOUBLE_EQ(half.rms, 1e-4 + 2 * 0x1p-12);
  const HeadTolerance brain = head_tolerance(DType::bf16, {1e-3, 5e-4}, 3, 1, kHeadDim);
  EXPECT_DOUBLE_EQ(brain.max, 2e-3 + 0x1p-7);
  const HeadTolerance single = head_tolerance(DType::f32, {1e-7, 5e-8}, 3, 1, kHeadDim);
  EXPECT_DOUBLE_EQ(single.max, 2e-7 + 4 * 0x1p-23 + 3 * 8 * 0x1p-24);
  EXPECT_DOUBLE_EQ(single.rms, 1e-7 + 0x1p-23 + 3 * 8 * 0x1p-24);
}

TEST(HeadTolerance, IsCappedForHalves) {
  EXPECT_DOUBLE_EQ(head_tolerance(DType::f16, {1, 1}, 3, 2, kHeadDim).max, 5e-3);
  EXPECT_DOUBLE_EQ(head_tolerance(DType::f16, {1, 1}, 3, 2, kHeadDim).rms, 5e-3);
  EXPECT_DOUBLE_EQ(head_tolerance(DType::bf16, {1, 1}, 3, 2, kHeadDim).max, 4e-2);
}

TEST(HeadTolerance, IsTheCapAloneWherePlainIsNotFinite) {
  EXPECT_DOUBLE_EQ(head_tolerance(DType::f16, {kNaN, kNaN}, 3, 1, kHeadDim).max, 2.5e-3);
  EXPECT_DOUBLE_EQ(head_tolerance(DType::bf16, {kInfinity, kInfinity}, 3, 1, kHeadDim).rms, 2e-2);
  EXPECT_TRUE(std::isfinite(head_tolerance(DType::f32, {kNaN, kNaN}, 3, 1, kHeadDim).max));
}

TEST(HeadTolerance, OfF64HasNoPlain) { EXPECT_DOUBLE_EQ(head_tolerance(DType::f64, {}, 3, 2, kHeadDim).max, 8e-12); }

TEST(LseTolerance, GrowsWithScoresAndWithTheValue) {
  EXPECT_DOUBLE_EQ(lse_tolerance(0, kHeadDim, 1), 4e-6);
  EXPECT_DOUBLE_EQ(lse_tolerance(6, kHeadDim, 8), 4e-6 * 4);
  EXPECT_DOUBLE_EQ(lse_tolerance(6, kHeadDim, -80), 4e-6 * 4 * 10);
}

Expectation numbers(std::size_t count, double value) {
  return {std::vector<double>(count, value), std::vector<Expect>(count, Expect::number)};
}

TEST(JudgeHeads, PassesJustBelowAndFailsJustAbove) {
  const Expectation expected = numbers(8, 1);
  const std::vector<HeadTolerance> tolerance{{0.1, 0.1}, {0.01, 0.01}};
  std::vector<double> actual(8, 1);
  actual[1] = 1.0999;
  actual[6] = 0.99001;
  EXPECT_TRUE(judge_heads("out", actual, expected, tolerance, 2).ok);
  actual[6] = 0.98999;
  const Verdict verdict = judge_heads("out", actual, expected, tolerance, 2);
  EXPECT_FALSE(verdict.ok);
  EXPECT_NE(verdict.what.find("out[head 1, row 1, 0]"), std::string::npos) << verdict.what;
  EXPECT_NEAR(verdict.error, 0.01001, 1e-12);
  EXPECT_DOUBLE_EQ(verdict.tolerance, 0.01);
}

TEST(JudgeHeads, JudgesTheRmsFrom64ElementsUp) {
  const std::vector<HeadTolerance> tolerance{{1, 0.1}};
  EXPECT_TRUE(judge_heads("out", std::vector<double>(63, 0.2), numbers(63, 0), tolerance, 1).ok);
  EXPECT_FALSE(judge_heads("out", std::vector<double>(64, 0.2), numbers(64, 0), tolerance, 1).ok);
  EXPECT_TRUE(judge_heads("out", std::vector<double>(64, 0.0999), numbers(64, 0), tolerance, 1).ok);
}

TEST(JudgeHeads, HoldsEveryKindOfExpectation) {
  const std::vector<HeadTolerance> loose{{1e9, 1e9}};
  const auto ok = [&](Expect kind, double value, double actual) {
    return judge_heads("out", {actual}, {{value}, {kind}}, loose, 1).ok;
  };
  EXPECT_TRUE(ok(Expect::exact, 0, 0));
  EXPECT_FALSE(ok(Expect::exact, 0, 1e-300));
  EXPECT_FALSE(ok(Expect::exact, 0, kNaN));
  EXPECT_TRUE(ok(Expect::exact, -kInfinity, -kInfinity));
  EXPECT_TRUE(ok(Expect::nan, kNaN, kNaN));
  EXPECT_FALSE(ok(Expect::nan, kNaN, 0));
  EXPECT_FALSE(ok(Expect::nan, kNaN, kInfinity));
  EXPECT_TRUE(ok(Expect::non_finite, kNaN, -kInfinity));
  EXPECT_TRUE(ok(Expect::non_finite, kNaN, kNaN));
  EXPECT_FALSE(ok(Expect::non_finite, kNaN, 1));
  EXPECT_FALSE(ok(Expect::number, 1, kNaN));
  EXPECT_FALSE(ok(Expect::number, 1, kInfinity));
}

/// Field case 28: a NaN in the oracle must fail, not agree with whatever the device says.
TEST(JudgeHeads, FieldCase28NaNInTheOracleFails) {
  for (const double actual : {0.0, 1.0, kNaN}) {
    EXPECT_FALSE(judge_heads("out", {actual}, {{kNaN}, {Expect::number}}, {{1e9, 1e9}}, 1).ok);
    EXPECT_FALSE(judge_each("lse", {actual}, {{kNaN}, {Expect::number}}, {1e9}).ok);
  }
}

/// What plain attention itself computes lies within the tolerance it defines.
TEST(AttentionTolerance, PlainPassesItsOwnTolerance) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    AttentionCase c;
    c.dtype = dtype;
    c.heads = 2;
    c.queries = 9;
    c.keys = 33;
    c.head_dim = c.value_dim = 32;
    const DenseAttention problem = AttentionTensors(c).dense();
    const AttentionOracle oracle = attention_oracle(problem);
    const AttentionTolerance tolerance = attention_tolerance(problem, oracle, dtype);
    const PlainAttention plain = plain_attention(problem, oracle.attended);
    EXPECT_TRUE(judge_heads("out", plain.out, oracle.out, tolerance.out, 32).ok);
    EXPECT_TRUE(judge_heads("weights", plain.weights, oracle.weights, tolerance.weights, 33).ok);
  }
}

}  // namespace
}  // namespace sorot::support
