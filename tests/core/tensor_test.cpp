#include "sorot/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

namespace {

using sorot::ConstTensorView;
using sorot::DType;
using sorot::TensorView;
using sorot::view;

static_assert(std::is_trivially_copyable_v<TensorView> && std::is_trivially_copyable_v<ConstTensorView>);
static_assert(std::is_convertible_v<TensorView, ConstTensorView>);
static_assert(!std::is_convertible_v<ConstTensorView, TensorView>, "an input must never become writable");

void expect_layout(const ConstTensorView& v, std::initializer_list<std::int64_t> shape,
                   std::initializer_list<std::int64_t> strides) {
  ASSERT_EQ(v.invalid, nullptr) << v.invalid;
  ASSERT_EQ(static_cast<std::size_t>(v.rank), shape.size());
  for (int d = 0; d < v.rank; ++d) {
    EXPECT_EQ(v.shape[d], shape.begin()[d]) << "shape " << d;
    EXPECT_EQ(v.strides[d], strides.begin()[d]) << "stride " << d;
  }
}

TEST(TensorView, IsRowMajorWithThePointersDtype) {
  float x[24];
  const TensorView t = view(x, {2, 3, 4});
  EXPECT_EQ(t.dtype, DType::f32);
  EXPECT_EQ(t.data, x);
  expect_layout(t, {2, 3, 4}, {12, 4, 1});

  const sorot::bfloat16 h[1]{};
  EXPECT_EQ(view(h, {1}).dtype, DType::bf16);
  const bool b[1]{};
  EXPECT_EQ(view(b, {1}).dtype, DType::boolean);
  EXPECT_EQ(view(static_cast<void*>(x), DType::i64, {3}).dtype, DType::i64);
}

TEST(TensorView, EmptyAndScalar) {
  float x = 0;
  EXPECT_EQ(view(&x, {}).rank, 0);
  expect_layout(view(&x, {3, 0, 2}), {3, 0, 2}, {2, 2, 1});
}

TEST(TensorView, RefusesMoreThanFourDimensions) {
  float x = 0;
  EXPECT_NE(view(&x, {1, 1, 1, 1, 1}).invalid, nullptr);
  EXPECT_NE(view(&x, {1, 1, 1, 1, 1}).permute({}).invalid, nullptr) << "once invalid, always invalid";
}

TEST(TensorView, Permute) {
  float x[120];
  const auto t = view(x, {2, 3, 4, 5});
  expect_layout(t.permute({0, 2, 1, 3}), {2, 4, 3, 5}, {60, 5, 20, 1});
  EXPECT_NE(t.permute({0, 1, 2}).invalid, nullptr);
  EXPECT_NE(t.permute({0, 1, 1, 3}).invalid, nullptr);
  EXPECT_NE(t.permute({0, 1, 2, 4}).invalid, nullptr);
  EXPECT_NE(t.permute({0, 1, 2, -1}).invalid, nullptr);
}

TEST(TensorView, Slice) {
  float x[24];
  const auto t = view(x, {2, 3, 4});
  const auto s = t.slice(1, 1, 3);
  EXPECT_EQ(s.data, x + 4);
  expect_layout(s, {2, 2, 4}, {12, 4, 1});
  expect_layout(t.slice(2, 4, 4), {2, 3, 0}, {12, 4, 1});
  EXPECT_NE(t.slice(3, 0, 1).invalid, nullptr);
  EXPECT_NE(t.slice(0, -1, 1).invalid, nullptr);
  EXPECT_NE(t.slice(0, 1, 0).invalid, nullptr);
  EXPECT_NE(t.slice(0, 0, 3).invalid, nullptr);
}

TEST(TensorView, Expand) {
  float x[4];
  const auto t = view(x, {1, 4});
  expect_layout(t.expand(0, 7), {7, 4}, {0, 1});
  EXPECT_NE(t.expand(1, 8).invalid, nullptr);
  EXPECT_NE(t.expand(2, 8).invalid, nullptr);
  EXPECT_NE(t.expand(0, -1).invalid, nullptr);
}

TEST(TensorView, WithStrides) {
  float x[4];
  expect_layout(view(x + 3, {4}).with_strides({-1}), {4}, {-1});
  EXPECT_NE(view(x, {4}).with_strides({1, 1}).invalid, nullptr);
}

/// Elements of a small i32 view in logical order.
std::vector<int> elements(const ConstTensorView& v) {
  std::vector<int> result;
  std::vector<std::int64_t> index(static_cast<std::size_t>(v.rank), 0);
  std::int64_t count = 1;
  for (int d = 0; d < v.rank; ++d) count *= v.shape[d];
  for (std::int64_t n = 0; n < count; ++n) {
    std::int64_t rest = n;
    std::int64_t offset = 0;
    for (int d = v.rank - 1; d >= 0; --d) {
      offset += rest % v.shape[d] * v.strides[d];
      rest /= v.shape[d];
    }
    result.push_back(static_cast<const std::int32_t*>(v.data)[offset]);
  }
  return result;
}

TEST(TensorView, ReshapeKeepsTheElementsWhereStridesAllowIt) {
  std::vector<std::int32_t> x(48);
  std::iota(x.begin(), x.end(), 0);
  const auto t = view(x.data(), {2, 4, 6});
  for (const auto& r : {t.reshape({8, 6}), t.reshape({48}), t.reshape({2, 2, 2, 6}), t.reshape({4, 12}),
                        t.reshape({1, 48, 1}), t.reshape({2, 4, 6})}) {
    ASSERT_EQ(r.invalid, nullptr) << r.invalid;
    EXPECT_EQ(elements(r), elements(t));
  }

  const auto heads = t.permute({1, 0, 2});  // [4, 2, 6], strides {6, 24, 1}
  EXPECT_EQ(elements(heads.reshape({4, 2, 2, 3})), elements(heads));
  EXPECT_EQ(elements(heads.reshape({2, 2, 2, 6})), elements(heads));
  EXPECT_NE(heads.reshape({8, 6}).invalid, nullptr);
  EXPECT_NE(heads.reshape({4, 12}).invalid, nullptr);

  const auto every_other = t.with_strides({24, 12, 2}).slice(1, 0, 1).slice(2, 0, 3);  // [2, 1, 3]
  EXPECT_EQ(elements(every_other.reshape({2, 3, 1})), elements(every_other));
  EXPECT_NE(every_other.reshape({6}).invalid, nullptr);

  const auto repeated = view(x.data(), {1, 6}).expand(0, 4);
  EXPECT_EQ(elements(repeated.reshape({2, 2, 6})), elements(repeated));
  EXPECT_NE(repeated.reshape({24}).invalid, nullptr);
}

TEST(TensorView, ReshapeRefusesOtherCountsAndRanks) {
  float x[24];
  const auto t = view(x, {2, 3, 4});
  EXPECT_NE(t.reshape({5, 5}).invalid, nullptr);
  EXPECT_NE(t.reshape({1, 1, 1, 2, 12}).invalid, nullptr);
  EXPECT_NE(t.reshape({-2, -12}).invalid, nullptr);
  EXPECT_NE(t.reshape({0}).invalid, nullptr);
  EXPECT_NE(view(x, {0, 4}).reshape({4}).invalid, nullptr);
  expect_layout(view(x, {0, 4}).reshape({2, 0}), {2, 0}, {1, 1});
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_NE(view(x, {1, 1}).expand(0, huge).expand(1, huge).reshape({huge, huge, 1}).invalid, nullptr);
}

TEST(TensorView, OperationsSurviveAbsurdStridesAndRanks) {
  float x[24];
  for (const std::int64_t stride :
       {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    const auto t = view(x, {4, 6}).with_strides({stride, stride});
    EXPECT_NE(t.reshape({24}).invalid, nullptr);
    EXPECT_NE(t.reshape({4, 2, 3}).invalid, nullptr);
    EXPECT_NE(t.reshape({2, 2, 2, 3}).invalid, nullptr);
  }
  for (const int rank : {-1, 5, 100}) {
    auto t = view(x, {4, 6});
    t.rank = rank;
    EXPECT_NE(t.permute({0, 1}).invalid, nullptr);
    EXPECT_NE(t.slice(0, 0, 1).invalid, nullptr);
    EXPECT_NE(t.expand(0, 1).invalid, nullptr);
    EXPECT_NE(t.reshape({24}).invalid, nullptr);
    EXPECT_NE(t.with_strides({1, 1}).invalid, nullptr);
  }
}

}  // namespace
