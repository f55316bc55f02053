#include "tests/support/oracle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sorot::support {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One head with D = Dv = 1, scale 1: s[i,j] = q[i] * k[j].
DenseAttention small(std::vector<double> q, std::vector<double> k, std::vector<double> v) {
  DenseAttention p;
  p.batch = p.heads = p.kv_heads = p.head_dim = p.value_dim = 1;
  p.queries = static_cast<std::int64_t>(q.size());
  p.keys = static_cast<std::int64_t>(k.size());
  p.q = std::move(q);
  p.k = std::move(k);
  p.v = std::move(v);
  p.scale = 1;
  return p;
}

std::vector<char> attended_row(const DenseAttention& p, std::size_t row) {
  const std::vector<char> all = attended_pairs(p);
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row) * p.keys;
  return {begin, begin + p.keys};
}

TEST(Oracle, IsASoftmaxByHand) {
  const AttentionOracle o = attention_oracle(small({1}, {0, std::log(3.0)}, {10, 20}));
  EXPECT_NEAR(o.out.value[0], 17.5, 1e-6);
  EXPECT_NEAR(o.weights.value[1], 0.75, 1e-7);
  EXPECT_NEAR(o.lse.value[0], std::log(4.0), 1e-7);
  EXPECT_EQ(o.out.kind[0], Expect::number);
}

TEST(Oracle, SoftcapBiasAlibiInOrder) {
  DenseAttention p = small({1}, {2}, {5});
  p.softcap = 1;
  p.bias = {2};
  p.alibi_slopes = {0.5};
  p.align = Align::offsets;
  p.offsets = {3};
  EXPECT_NEAR(attention_oracle(p).lse.value[0], std::tanh(2.0) + 2 - 1.5, 1e-6);
}

TEST(Oracle, SinkJoinsTheDenominatorOnce) {
  DenseAttention p = small({0}, {1, 1}, {4, 4});
  p.sinks = {std::log(2.0)};
  const AttentionOracle o = attention_oracle(p);
  EXPECT_NEAR(o.out.value[0], 2, 1e-12);
  EXPECT_NEAR(o.lse.value[0], std::log(4.0), 1e-12);
}

/// Field case 27: what is attended comes from the definition, pair by pair, and shares no code with any kernel.
TEST(Oracle, FieldCase27AttendedPairsByHand) {
  DenseAttention p = small(std::vector<double>(3), std::vector<double>(128), std::vector<double>(128));
  p.causal = true;
  const std::vector<char> all = attended_pairs(p);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 128; ++j) EXPECT_EQ(all[i * 128 + j] != 0, j <= i);
  }
  p.align = Align::bottom_right;
  EXPECT_EQ(attended_row(p, 0), [] {
    std::vector<char> row(128, 1);
    row[126] = row[127] = 0;
    return row;
  }());
}

TEST(Oracle, WindowsAreInclusiveAndPositionsDoNotOverflow) {
  DenseAttention p = small(std::vector<double>(2), std::vector<double>(4), std::vector<double>(4));
  p.window = {1, 0};
  p.align = Align::offsets;
  p.offsets = {2};
  EXPECT_EQ(attended_row(p, 0), (std::vector<char>{0, 1, 1, 0}));
  EXPECT_EQ(attended_row(p, 1), (std::vector<char>{0, 0, 1, 1}));
  p.offsets = {std::numeric_limits<std::int32_t>::max()};
  p.window = {std::numeric_limits<std::int32_t>::max(), -1};
  EXPECT_EQ(attended_row(p, 1), (std::vector<char>{0, 1, 1, 1}));  // p = 2^31, p - left = 1
  p.offsets = {std::numeric_limits<std::int32_t>::min()};
  p.window = {-1, std::numeric_limits<std::int32_t>::max()};
  EXPECT_EQ(attended_row(p, 0), (std::vector<char>{0, 0, 0, 0}));  // p + right = -1
}

TEST(Oracle, LengthsAreClamped) {
  DenseAttention p = small({0}, {0, 0}, {1, 1});
  p.kv_lengths = {-7};
  EXPECT_EQ(attended_row(p, 0), (std::vector<char>{0, 0}));
  p.kv_lengths = {1};
  EXPECT_EQ(attended_row(p, 0), (std::vector<char>{1, 0}));
  p.kv_lengths = {1 << 30};
  EXPECT_EQ(attended_row(p, 0), (std::vector<char>{1, 1}));
}

TEST(Oracle, EmptyRows) {
  DenseAttention p = small({1}, {1, 1}, {kNaN, 2});
  p.mask = {0, 0};
  AttentionOracle o = attention_oracle(p);
  EXPECT_EQ(o.out.kind[0], Expect::exact);
  EXPECT_EQ(o.out.value[0], 0);
  EXPECT_EQ(o.lse.value[0], -kInfinity);
  p.sinks = {0.25};
  EXPECT_EQ(attention_oracle(p).lse.value[0], 0.25);
  // All scores -inf: empty as well, whatever v holds.
  p = small({1}, {-kInfinity, -kInfinity}, {kNaN, 2});
  o = attention_oracle(p);
  EXPECT_EQ(o.out.kind[0], Expect::exact);
  EXPECT_EQ(o.weights.kind[0], Expect::exact);
  EXPECT_EQ(o.lse.value[0], -kInfinity);
}

TEST(Oracle, PoisonedRowsAreNaNOnlyWhereAttended) {
  for (const double bad : {kNaN, kInfinity}) {
    DenseAttention p = small({1, 0.5}, {bad, 1, 1}, {1, 2, 3});
    p.mask = {1, 1, 0, 0, 1, 1};
    const AttentionOracle o = attention_oracle(p);
    EXPECT_EQ(o.out.kind[0], Expect::nan);
    EXPECT_EQ(o.lse.kind[0], Expect::nan);
    EXPECT_EQ(o.weights.kind[1], Expect::nan);
    EXPECT_EQ(o.weights.kind[2], Expect::exact);
    EXPECT_EQ(o.out.kind[1], Expect::number);  // its row attends keys 1 and 2 alone
    EXPECT_NEAR(o.out.value[1], 2.5, 1e-12);
  }
}

TEST(Oracle, NonFiniteValuesSpoilTheirOwnColumnEvenAtWeightZero) {
  DenseAttention p = small({1}, {0, -1e4}, {1, 2, kInfinity, 4});
  p.value_dim = 2;
  const AttentionOracle o = attention_oracle(p);
  EXPECT_EQ(o.out.kind[0], Expect::non_finite);
  EXPECT_EQ(o.out.kind[1], Expect::number);
  EXPECT_NEAR(o.out.value[1], 2, 1e-12);
}

TEST(Oracle, SpecialScores) {
  // scale 0 times infinity is NaN; a score beyond f32 is infinite; softcap turns infinity into the cap.
  DenseAttention p = small({1}, {kInfinity}, {1});
  p.scale = 0;
  EXPECT_EQ(attention_oracle(p).lse.kind[0], Expect::nan);
  p = small({1e30}, {1e30}, {1});
  EXPECT_EQ(attention_oracle(p).lse.kind[0], Expect::nan);
  p.dtype = DType::f64;
  EXPECT_EQ(attention_oracle(p).lse.kind[0], Expect::number);
  p = small({1e30}, {-1e30, 1e-30}, {kNaN, 3});
  EXPECT_EQ(attention_oracle(p).out.kind[0], Expect::non_finite);  // key 0 is attended with score -inf
  EXPECT_EQ(attention_oracle(p).weights.kind[0], Expect::exact);
  p = small({kInfinity}, {1}, {7});
  p.softcap = 2;
  EXPECT_NEAR(attention_oracle(p).lse.value[0], 2, 1e-12);
}

TEST(Oracle, SinksThatAreNoNumbers) {
  DenseAttention p = small({0}, {1}, {4});
  p.sinks = {-kInfinity};
  EXPECT_EQ(attention_oracle(p).out.value[0], 4);
  p.sinks = {kInfinity};
  EXPECT_EQ(attention_oracle(p).out.kind[0], Expect::nan);
  p.mask = {0};
  EXPECT_EQ(attention_oracle(p).out.kind[0], Expect::nan);
}

TEST(Oracle, ABiasThatSwallowsTheScoreDoesSoInF32) {
  DenseAttention p = small({1}, {3, -3}, {1, 3});
  p.bias = {-1e9, -1e9};
  EXPECT_EQ(attention_oracle(p).out.value[0], 2);
  p.dtype = DType::f64;
  EXPECT_GT(std::fabs(attention_oracle(p).out.value[0] - 2), 0.9);
}

}  // namespace
}  // namespace sorot::support
