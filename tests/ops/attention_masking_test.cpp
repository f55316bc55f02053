#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "tests/ops/devices.h"
#include "tests/support/attention_problem.h"
#include "tests/support/read_args.h"

/// Cases from the field: what is attended, and what a pair that is not attended may not do.
namespace sorot::support {
namespace {

using Sizes = AttentionProblemF32::Sizes;

class AttentionMasking : public OnEveryDevice {};
SOROT_ON_EVERY_DEVICE(AttentionMasking);

void expect_empty_row(const AttentionProblemF32& p, std::int64_t b, std::int64_t h, std::int64_t i) {
  for (std::int64_t d = 0; d < p.sizes.value_dim; ++d) EXPECT_EQ(p.out(b, h, i, d), 0.0F);
  for (std::int64_t j = 0; j < p.sizes.keys; ++j) EXPECT_EQ(p.weight(b, h, i, j), 0.0F);
  EXPECT_EQ(p.lse(b, h, i), -kInf);
}

TEST_P(AttentionMasking, FieldCase1WholeRowsMaskedByABooleanMask) {
  AttentionProblemF32 open({1, 1, 1, 8, 8, 8, 8});
  run(open);
  AttentionProblemF32 p({1, 1, 1, 8, 8, 8, 8});
  std::array<bool, 64> mask;
  for (std::size_t e = 0; e < 64; ++e) mask[e] = e < 32;
  p.args.mask = view(mask.data(), {8, 8});
  expect_oracle(p);
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t d = 0; d < 8; ++d) EXPECT_EQ(p.out(0, 0, i, d), open.out(0, 0, i, d));
    EXPECT_EQ(p.lse(0, 0, i), open.lse(0, 0, i));
  }
  for (std::int64_t i = 4; i < 8; ++i) expect_empty_row(p, 0, 0, i);
}

TEST_P(AttentionMasking, FieldCase1EmptyRowsByEveryOtherMeans) {
  const auto empty = [&](const std::function<void(AttentionProblemF32&)>& mask) {
    AttentionProblemF32 p({2, 2, 1, 3, 5, 4, 4});
    mask(p);
    run(p);
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t i = 0; i < 3; ++i) expect_empty_row(p, 0, h, i);
    }
    EXPECT_EQ(judge_call(p.args).what, "");
  };
  constexpr std::int32_t kLengths[] = {0, 4};
  constexpr std::int32_t kBefore[] = {-100, 0};
  constexpr std::int32_t kBehind[] = {100, 0};
  const float bias[] = {-kInf, 0.5F};
  empty([&](auto& p) { p.args.kv_lengths = view(kLengths, {2}); });
  empty([&](auto& p) { p.args.bias = view(bias, {2, 1, 1, 1}); });
  empty([&](auto& p) {
    p.args.align = Align::offsets;
    p.args.offsets = view(kBefore, {2});
    p.args.causal = true;
  });
  empty([&](auto& p) {
    p.args.align = Align::offsets;
    p.args.offsets = view(kBehind, {2});
    p.args.window.left = 3;
  });
}

TEST_P(AttentionMasking, FieldCase2RowsMaskedByAnAdditiveMask) {
  AttentionProblemF32 p({1, 1, 1, 3, 4, 8, 2});
  std::array<float, 12> bias{};
  for (std::size_t j = 0; j < 4; ++j) {
    bias[j] = -kInf;
    bias[4 + j] = -3.4e38F;  // a number: all scores are equal then
  }
  p.args.bias = view(bias.data(), {3, 4});
  expect_oracle(p);
  expect_empty_row(p, 0, 0, 0);
  for (std::int64_t j = 0; j < 4; ++j) EXPECT_EQ(p.weight(0, 0, 1, j), 0.25F);
  for (std::int64_t d = 0; d < 2; ++d) {
    const float mean = (p.v(0, 0, 0, d) + p.v(0, 0, 1, d) + p.v(0, 0, 2, d) + p.v(0, 0, 3, d)) / 4;
    EXPECT_NEAR(p.out(0, 0, 1, d), mean, 1e-6F);
  }
  EXPECT_NEAR(p.lse(0, 0, 1), -3.4e38F, 1e32F);
}

TEST_P(AttentionMasking, FieldCase2TheUsualFillOfMinusABillion) {
  AttentionProblemF32 p({1, 1, 1, 2, 5, 8, 3});
  std::array<float, 10> bias;
  bias.fill(-1e9F);
  bias[1] = 0;
  p.args.bias = view(bias.data(), {2, 5});
  run(p);
  EXPECT_EQ(p.weight(0, 0, 0, 1), 1.0F);
  EXPECT_EQ(p.weight(0, 0, 0, 0), 0.0F);
  for (std::int64_t j = 0; j < 5; ++j) EXPECT_FLOAT_EQ(p.weight(0, 0, 1, j), 0.2F);
}

/// Ways to keep row 0 of a 3 x 4 problem from key 2, of which the last lets row 2 attend it.
struct Hide {
  const char* how;
  std::function<void(AttentionArgs&)> apply;
  bool only_row_0;
};

const std::vector<Hide>& ways_to_hide() {
  static constexpr bool kColumn[] = {true, true, false, true};
  static constexpr bool kCell[] = {true, true, false, true, true, true, true, true, true, true, true, true};
  static const float kBias[] = {0, 0.5F, -kInf, 1};
  static constexpr std::int32_t kLength[] = {2};
  static constexpr std::int32_t kOffset[] = {3};
  static const std::vector<Hide> list{{"mask column", [](AttentionArgs& a) { a.mask = view(kColumn, {4}); }, false},
                                      {"mask cell",
                                       [](AttentionArgs& a) {
                                         a.mask = view(kCell, {3, 4});
                                       },
                                       true},
                                      {"bias -inf", [](AttentionArgs& a) { a.bias = view(kBias, {4}); }, false},
                                      {"kv length", [](AttentionArgs& a) { a.kv_lengths = view(kLength, {1}); }, false},
                                      {"causal", [](AttentionArgs& a) { a.causal = true; }, true},
                                      {"window right", [](AttentionArgs& a) { a.window.right = 1; }, true},
                                      {"window left",
                                       [](AttentionArgs& a) {
                                         a.align = Align::offsets;
                                         a.offsets = view(kOffset, {1});
                                         a.window.left = 0;
                                       },
                                       false}};
  return list;
}

/// Row 0 with `value` in k and v of key 2, which it does not attend.
std::vector<float> row_0_with(const Device& device, const Hide& hide, bool in_key, float value) {
  AttentionProblemF32 p({1, 1, 1, 3, 4, 5, 6});
  hide.apply(p.args);
  (in_key ? p.k(0, 0, 2, 1) : p.v(0, 0, 2, 1)) = value;
  EXPECT_TRUE(p.run(device).ok());
  EXPECT_EQ(judge_call(p.args).what, "") << hide.how;
  std::vector<float> row(p.out_data.begin(), p.out_data.begin() + 6);
  row.push_back(p.lse(0, 0, 0));
  row.insert(row.end(), p.weights_data.begin(), p.weights_data.begin() + 4);
  return row;
}

TEST_P(AttentionMasking, FieldCase3NonFiniteInAMaskedKeyChangesNoBit) {
  for (const Hide& hide : ways_to_hide()) {
    const std::vector<float> clean = row_0_with(device_, hide, true, 1);
    for (const float bad : {kNan, kInf, -kInf}) {
      EXPECT_TRUE(same_bits(row_0_with(device_, hide, true, bad), clean)) << hide.how << " " << bad;
    }
  }
}

TEST_P(AttentionMasking, FieldCase4NonFiniteInAMaskedValueChangesNoBit) {
  for (const Hide& hide : ways_to_hide()) {
    const std::vector<float> clean = row_0_with(device_, hide, false, 1);
    for (const float bad : {kNan, kInf, -kInf}) {
      EXPECT_TRUE(same_bits(row_0_with(device_, hide, false, bad), clean)) << hide.how << " " << bad;
    }
  }
}

TEST_P(AttentionMasking, FieldCase4AnAttendedNonFiniteValueSpoilsItsColumnEvenAtWeightZero) {
  for (const float bad : {kNan, kInf, -kInf}) {
    AttentionProblemF32 p({1, 1, 1, 1, 3, 2, 4});
    const float bias[] = {0, -1e9F, 0};
    p.args.bias = view(bias, {3});
    p.v(0, 0, 1, 2) = bad;
    run(p);
    EXPECT_EQ(p.weight(0, 0, 0, 1), 0.0F);
    EXPECT_FALSE(std::isfinite(p.out(0, 0, 0, 2)));
    EXPECT_EQ(judge_call(p.args).what, "");
  }
}

TEST_P(AttentionMasking, FieldCase5PoisonedTailsBeyondTheLength) {
  constexpr std::int32_t kLengths[] = {1, 3};
  AttentionProblemF32 padded({2, 2, 2, 3, 3, 64, 64});
  padded.args.kv_lengths = view(kLengths, {2});
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t j = 1; j < 3; ++j) {
      for (std::int64_t d = 0; d < 64; ++d) padded.k(0, h, j, d) = padded.v(0, h, j, d) = kNan;
    }
  }
  run(padded);
  for (std::int64_t b = 0; b < 2; ++b) {
    AttentionProblemF32 alone({1, 2, 2, 3, kLengths[b], 64, 64});
    alone.args.q = padded.args.q.slice(0, b, b + 1);
    alone.args.k = padded.args.k.slice(0, b, b + 1).slice(2, 0, kLengths[b]);
    alone.args.v = padded.args.v.slice(0, b, b + 1).slice(2, 0, kLengths[b]);
    run(alone);
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(padded.lse(b, h, i), alone.lse(0, h, i));
        for (std::int64_t d = 0; d < 64; ++d) EXPECT_EQ(padded.out(b, h, i, d), alone.out(0, h, i, d));
      }
    }
  }
}

TEST_P(AttentionMasking, FieldCase6MaskedBeginningThenNegativeScores) {
  AttentionProblemF32 p({1, 7, 1, 88, 448, 8, 8});
  for (float& x : p.q_data) x = std::fabs(x) + 0.5F;
  for (float& x : p.k_data) x = -std::fabs(x) - 0.5F;
  p.args.causal = true;
  expect_oracle(p);  // every score is negative
  std::unique_ptr<bool[]> mask(new bool[448]);
  for (std::size_t j = 0; j < 448; ++j) mask[j] = j >= 200;
  p.args.mask = view(mask.get(), {448});
  p.args.align = Align::bottom_right;
  expect_oracle(p);  // and whole tiles of keys come to nothing before the first that counts
}

TEST_P(AttentionMasking, FieldCase8MoreQueriesThanKeysAtTheBottomRight) {
  AttentionProblemF32 p({1, 1, 1, 2, 1, 4, 4});
  p.args.align = Align::bottom_right;
  p.args.causal = true;
  run(p);
  expect_empty_row(p, 0, 0, 0);
  EXPECT_EQ(p.weight(0, 0, 1, 0), 1.0F);
}

TEST_P(AttentionMasking, FieldCase9CausalAlignment) {
  AttentionProblemF32 p({1, 1, 1, 1, 2, 4, 4});
  p.args.causal = true;
  run(p);
  EXPECT_EQ(p.weight(0, 0, 0, 0), 1.0F);
  EXPECT_EQ(p.weight(0, 0, 0, 1), 0.0F);
  p.args.align = Align::bottom_right;
  run(p);
  EXPECT_GT(p.weight(0, 0, 0, 0), 0.0F);
  EXPECT_GT(p.weight(0, 0, 0, 1), 0.0F);
}

TEST_P(AttentionMasking, FieldCase12SoftcapBeforeTheMask) {
  AttentionProblemF32 p({1, 1, 1, 1, 2, 4, 4});
  for (float& x : p.q_data) x = 0;
  constexpr bool kMask[] = {true, false};
  p.args.mask = view(kMask, {2});
  p.args.softcap = 1;
  run(p);
  EXPECT_EQ(p.weight(0, 0, 0, 0), 1.0F);
  EXPECT_EQ(p.weight(0, 0, 0, 1), 0.0F);
  EXPECT_EQ(p.lse(0, 0, 0), 0.0F);
}

TEST_P(AttentionMasking, FieldCase14WindowIsNotOffByOne) {
  AttentionProblemF32 p({1, 1, 1, 3, 3, 4, 4});
  p.args.causal = true;
  p.args.window.left = 1;
  expect_oracle(p);
  EXPECT_EQ(p.weight(0, 0, 2, 0), 0.0F);
  EXPECT_GT(p.weight(0, 0, 2, 1), 0.0F);
  EXPECT_GT(p.weight(0, 0, 2, 2), 0.0F);
  p.args.window.left = 0;
  run(p);
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(p.weight(0, 0, i, i), 1.0F);
}

TEST_P(AttentionMasking, FieldCase15WindowEqualsCausal) {
  for (const Align align : {Align::top_left, Align::bottom_right}) {
    AttentionProblemF32 causal({1, 2, 2, 9, 21, 8, 8});
    causal.args.align = align;
    causal.args.causal = true;
    run(causal);
    AttentionProblemF32 window({1, 2, 2, 9, 21, 8, 8});
    window.args.align = align;
    window.args.window = {20, 0};
    run(window);
    EXPECT_TRUE(same_bits(causal.out_data, window.out_data));
    EXPECT_TRUE(same_bits(causal.lse_data, window.lse_data));
    EXPECT_TRUE(same_bits(causal.weights_data, window.weights_data));
  }
}

TEST_P(AttentionMasking, PositionsReachTheEndsOfI32) {
  constexpr std::int32_t kHighest = std::numeric_limits<std::int32_t>::max();
  constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min();
  for (const std::int32_t offset : {kLowest, kLowest + 1, -1, kHighest - 1, kHighest}) {
    for (const std::int32_t side : {-1, 0, 1, kHighest}) {
      for (const bool left : {false, true}) {
        AttentionProblemF32 p({1, 1, 1, 3, 4, 4, 4});
        p.args.align = Align::offsets;
        p.args.offsets = view(&offset, {1});
        (left ? p.args.window.left : p.args.window.right) = side;
        expect_oracle(p);
      }
    }
  }
}

TEST_P(AttentionMasking, FieldCase22EmptySequencesInABatch) {
  constexpr std::int32_t kLengths[] = {0, 3, 0, -5, 100};
  AttentionProblemF32 p({5, 2, 2, 2, 3, 4, 4});
  p.args.kv_lengths = view(kLengths, {5});
  for (std::int64_t j = 0; j < 3; ++j) p.k(0, 0, j, 0) = p.v(2, 1, j, 3) = kNan;
  expect_oracle(p);
  for (const std::int64_t b : {0, 2, 3}) {
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t i = 0; i < 2; ++i) expect_empty_row(p, b, h, i);
    }
  }
}

TEST_P(AttentionMasking, FieldCase26PaddedBatchAgreesWithSeparateRuns) {
  constexpr std::int32_t kLengths[] = {77, 1, 0, 33};
  for (const Align align : {Align::top_left, Align::bottom_right}) {
    AttentionProblemF32 batch({4, 2, 1, 5, 77, 16, 16});
    batch.args.kv_lengths = view(kLengths, {4});
    batch.args.align = align;
    batch.args.causal = true;
    run(batch);
    for (std::int64_t b = 0; b < 4; ++b) {
      AttentionProblemF32 alone({1, 2, 1, 5, kLengths[b], 16, 16});
      alone.args.q = batch.args.q.slice(0, b, b + 1);
      alone.args.k = batch.args.k.slice(0, b, b + 1).slice(2, 0, kLengths[b]);
      alone.args.v = batch.args.v.slice(0, b, b + 1).slice(2, 0, kLengths[b]);
      alone.args.align = align;
      alone.args.causal = true;
      run(alone);
      const auto begin = batch.out_data.begin() + b * 2 * 5 * 16;
      EXPECT_TRUE(same_bits({begin, begin + 2 * 5 * 16}, alone.out_data)) << "sequence " << b;
      const auto lse = batch.lse_data.begin() + b * 2 * 5;
      EXPECT_TRUE(same_bits({lse, lse + 2 * 5}, alone.lse_data)) << "sequence " << b;
    }
  }
}

}  // namespace
}  // namespace sorot::support
