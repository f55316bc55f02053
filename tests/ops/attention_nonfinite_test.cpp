#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/ops/devices.h"
#include "tests/support/attention_problem.h"
#include "tests/support/read_args.h"

/// NaN and infinities in k and v, attended by some rows and masked for others, at the edges and in the middle of every
/// tile a kernel may use. Each head has its own place for one of them, so that a spoiled head tells which.
namespace sorot::support {
namespace {

class AttentionNonFinite : public OnEveryDevice {};
SOROT_ON_EVERY_DEVICE(AttentionNonFinite);

constexpr std::int64_t kPlaces[] = {0, 1, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, -2, -1};
constexpr std::int64_t kHeads = std::size(kPlaces);  ///< negative places count from the end
constexpr std::int64_t kHeadDim = 12;
constexpr std::int64_t kValueDim = 9;

struct Shape {
  std::int64_t queries, keys;
};
constexpr Shape kShapes[] = {{1, 1}, {1, 130}, {3, 64}, {17, 33}, {16, 16}, {33, 65}, {64, 48}, {65, 129}};

/// Everything a way of masking may refer to.
struct Masks {
  explicit Masks(const Shape& s)
      : length{static_cast<std::int32_t>((s.keys + 1) / 2)}, offset{static_cast<std::int32_t>(s.keys / 3)} {
    for (std::int64_t e = 0; e < s.queries * s.keys; ++e) {
      cells.push_back(e % 3 != 0);
      minus_infinity.push_back(e % 4 == 1 ? -kInf : 0.25F);
    }
    for (std::int64_t j = 0; j < s.keys; ++j) columns.push_back(j % 2 == 0);
  }
  static const bool* bools(const std::vector<char>& bytes) { return reinterpret_cast<const bool*>(bytes.data()); }

  std::vector<char> cells, columns;
  std::vector<float> minus_infinity;
  std::int32_t length[1];
  std::int32_t offset[1];
};

struct Masking {
  const char* name;
  std::function<void(AttentionArgs&, const Shape&, const Masks&)> apply;
};

const std::vector<Masking>& maskings() {
  using A = AttentionArgs;
  static const std::vector<Masking> list{
      {"nothing", [](A&, const Shape&, const Masks&) {}},
      {"length", [](A& a, const Shape&, const Masks& m) { a.kv_lengths = view(m.length, {1}); }},
      {"causal", [](A& a, const Shape&, const Masks&) { a.causal = true; }},
      {"causal at the bottom right",
       [](A& a, const Shape&, const Masks& m) {
         a.causal = true;
         a.align = Align::bottom_right;
         a.kv_lengths = view(m.length, {1});
       }},
      {"window left",
       [](A& a, const Shape&, const Masks&) {
         a.window.left = 3;
         a.align = Align::bottom_right;
       }},
      {"window right", [](A& a, const Shape&, const Masks&) { a.window.right = 16; }},
      {"window behind offsets",
       [](A& a, const Shape&, const Masks& m) {
         a.window = {5, 2};
         a.align = Align::offsets;
         a.offsets = view(m.offset, {1});
       }},
      {"mask of columns",
       [](A& a, const Shape& s, const Masks& m) { a.mask = view(Masks::bools(m.columns), {s.keys}); }},
      {"mask of cells",
       [](A& a, const Shape& s, const Masks& m) {
         a.mask = view(Masks::bools(m.cells), {s.queries, s.keys});
       }},
      {"bias of -inf",
       [](A& a, const Shape& s, const Masks& m) {
         a.bias = view(m.minus_infinity.data(), {s.queries, s.keys});
       }},
  };
  return list;
}

/// Tensors of another type with the numbers of a problem; its bias and lse stay f32.
template <class T>
struct Rounded {
  explicit Rounded(const AttentionProblemF32& p) : q(p.q_data.size()), k(p.k_data.size()), v(p.v_data.size()) {
    const auto round = [](const std::vector<float>& from, std::vector<T>& to) {
      for (std::size_t e = 0; e < from.size(); ++e) to[e] = T(from[e]);
    };
    round(p.q_data, q);
    round(p.k_data, k);
    round(p.v_data, v);
    out.resize(p.out_data.size());
    args = p.args;
    args.weights = {};
    const auto replace = [](auto& tensor, auto& data) {
      tensor.data = data.data();
      tensor.dtype = detail::dtype_of<T>();
    };
    replace(args.q, q);
    replace(args.k, k);
    replace(args.v, v);
    replace(args.out, out);
  }

  std::vector<T> q, k, v, out;
  AttentionArgs args;
};

/// One bad number a head: in its kv head, at its place among the keys.
void spoil(AttentionProblemF32& p, bool in_keys, std::size_t turn) {
  constexpr std::array<float, 3> kBad{kNan, kInf, -kInf};
  for (std::int64_t h = 0; h < kHeads; ++h) {
    const std::int64_t place = kPlaces[h] < 0 ? p.sizes.keys + kPlaces[h] : kPlaces[h];
    if (place < 0 || place >= p.sizes.keys) continue;
    const std::int64_t width = in_keys ? kHeadDim : kValueDim;
    const std::int64_t d = h % 3 == 0 ? 0 : h % 3 == 1 ? width - 1 : h % width;
    const float bad = kBad[(static_cast<std::size_t>(h) + turn) % kBad.size()];
    (in_keys ? p.k(0, h, place, d) : p.v(0, h, place, d)) = bad;
  }
}

template <class T>
void expect_contract(const Device& device, bool in_keys, std::size_t turn) {
  for (const Shape& shape : kShapes) {
    const Masks masks(shape);
    for (const Masking& masking : maskings()) {
      AttentionProblemF32 p({1, kHeads, kHeads, shape.queries, shape.keys, kHeadDim, kValueDim});
      spoil(p, in_keys, turn);
      masking.apply(p.args, shape, masks);
      Rounded<T> rounded(p);
      if constexpr (std::is_same_v<T, float>) rounded.args.weights = p.args.weights;
      const Status status = plan_and_run(device, rounded.args);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(judge_call(rounded.args).what, "")
          << masking.name << ", " << shape.queries << " queries, " << shape.keys << " keys, turn " << turn;
    }
  }
}

/// A NaN in v makes a kernel look again, more carefully: it must not cost the other columns their smallest or largest
/// numbers. Column 0 is the small or large one, column 1 has the NaN, which every row sees.
TEST_P(AttentionNonFinite, BesideTheSmallestAndTheLargestValues) {
  for (const float value : {1.3e-39F, 1.3e-38F, 1.3e-30F, 1.0F, 3.4e38F}) {
    for (const std::int64_t keys : {2, 40, 700}) {
      for (const std::int64_t queries : {1, 20}) {
        AttentionProblemF32 p({1, 1, 1, queries, keys, 4, 3});
        for (std::int64_t j = 0; j < keys; ++j) p.v(0, 0, j, 0) = value;
        p.v(0, 0, keys / 2, 1) = kNan;
        p.args.weights = {};
        run(p);
        const auto expected = static_cast<double>(value);
        // Four steps of subnormal numbers, where they are the larger part.
        EXPECT_NEAR(static_cast<double>(p.out(0, 0, queries - 1, 0)), expected, 2e-6 * expected + 4 * 0x1p-149)
            << value << ", " << keys << " keys";
        EXPECT_TRUE(std::isnan(p.out(0, 0, 0, 1)));
        EXPECT_EQ(judge_call(p.args).what, "") << value << ", " << keys << " keys";
      }
    }
  }
}

TEST_P(AttentionNonFinite, InKeysOfF32) { expect_contract<float>(device_, true, 0); }
TEST_P(AttentionNonFinite, InKeysOfF16) { expect_contract<float16>(device_, true, 1); }
TEST_P(AttentionNonFinite, InKeysOfBf16) { expect_contract<bfloat16>(device_, true, 2); }
TEST_P(AttentionNonFinite, InValuesOfF32) { expect_contract<float>(device_, false, 0); }
TEST_P(AttentionNonFinite, InValuesOfF16) { expect_contract<float16>(device_, false, 1); }
TEST_P(AttentionNonFinite, InValuesOfBf16) { expect_contract<bfloat16>(device_, false, 2); }

/// All that is masked is NaN at once: whole tiles of it, and tiles of which one key counts.
TEST_P(AttentionNonFinite, EverythingMaskedIsNan) {
  for (const Shape& shape : kShapes) {
    AttentionProblemF32 clean({1, 2, 1, shape.queries, shape.keys, kHeadDim, kValueDim});
    AttentionProblemF32 p({1, 2, 1, shape.queries, shape.keys, kHeadDim, kValueDim});
    std::vector<char> columns;
    for (std::int64_t j = 0; j < shape.keys; ++j) {
      columns.push_back(j % 24 == 5 || j >= 63);
      for (std::int64_t d = 0; columns.back() == 0 && d < kHeadDim; ++d) p.k(0, 0, j, d) = kNan;
      for (std::int64_t d = 0; columns.back() == 0 && d < kValueDim; ++d) p.v(0, 0, j, d) = kInf;
    }
    clean.args.mask = p.args.mask = view(Masks::bools(columns), {shape.keys});
    clean.args.causal = p.args.causal = true;
    clean.args.align = p.args.align = Align::bottom_right;
    run(clean);
    expect_oracle(p);
    EXPECT_TRUE(same_bits(p.out_data, clean.out_data)) << shape.queries << " queries, " << shape.keys << " keys";
    EXPECT_TRUE(same_bits(p.lse_data, clean.lse_data));
    EXPECT_TRUE(same_bits(p.weights_data, clean.weights_data));
  }
}

}  // namespace
}  // namespace sorot::support
