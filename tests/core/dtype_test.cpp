#include "sorot/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace {

using sorot::bfloat16;
using sorot::DType;
using sorot::float16;

/// What a 16-bit pattern means, from the definition of the format: sign, exponent, fraction.
double decode(unsigned bits, int exponent_bits, int fraction_bits) {
  const double sign = (bits >> 15) != 0 ? -1.0 : 1.0;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double fraction = std::ldexp(bits & ((1U << fraction_bits) - 1), -fraction_bits);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1 + fraction, exponent - bias);
}

template <class T>
struct Format;
template <>
struct Format<float16> {
  static constexpr int kExponentBits = 5;
  static constexpr int kFractionBits = 10;
};
template <>
struct Format<bfloat16> {
  static constexpr int kExponentBits = 8;
  static constexpr int kFractionBits = 7;
};

template <class T>
double decode(unsigned bits) {
  return decode(bits, Format<T>::kExponentBits, Format<T>::kFractionBits);
}

template <class T>
class HalfType : public testing::Test {};
using HalfTypes = testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(HalfType, HalfTypes);

TYPED_TEST(HalfType, EveryPatternWidensExactlyAndComesBack) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto x = TypeParam::from_bits(static_cast<std::uint16_t>(bits));
    const double expected = decode<TypeParam>(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(x))) << bits;
      ASSERT_TRUE(std::isnan(static_cast<double>(x))) << bits;
      ASSERT_TRUE(std::isnan(static_cast<double>(TypeParam(static_cast<float>(x))))) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(x), expected) << bits;
    ASSERT_EQ(std::signbit(static_cast<float>(x)), std::signbit(expected)) << bits;
    ASSERT_EQ(TypeParam(static_cast<float>(x)).bits, bits);
    ASSERT_EQ(TypeParam(static_cast<double>(x)).bits, bits);
  }
}

/// Between each pair of neighbours: the midpoint goes to the even one, a hair to either side to the nearer one. The
/// hair is far below float's precision, so this also proves that a double is rounded once.
TYPED_TEST(HalfType, RoundsToNearestEvenBetweenEveryPairOfNeighbours) {
  constexpr unsigned kInfinity = ((1U << Format<TypeParam>::kExponentBits) - 1) << Format<TypeParam>::kFractionBits;
  for (unsigned bits = 0; bits < kInfinity; ++bits) {
    const double low = decode<TypeParam>(bits);
    const double step = low - decode<TypeParam>(bits == 0 ? 0x8001 : bits - 1);
    const double high = bits + 1 == kInfinity ? low + step : decode<TypeParam>(bits + 1);
    const double middle = low / 2 + high / 2;
    const unsigned even = (bits & 1) == 0 ? bits : bits + 1;
    for (const double sign : {1.0, -1.0}) {
      const unsigned sign_bit = sign < 0 ? 0x8000 : 0;
      ASSERT_EQ(TypeParam(sign * middle).bits, even | sign_bit) << bits;
      ASSERT_EQ(TypeParam(sign * std::nextafter(middle, 0.0)).bits, bits | sign_bit) << bits;
      ASSERT_EQ(TypeParam(sign * std::nextafter(middle, 2 * high)).bits, (bits + 1) | sign_bit) << bits;
    }
  }
}

TYPED_TEST(HalfType, OverflowInfinityAndTinyValues) {
  constexpr unsigned kInfinity = ((1U << Format<TypeParam>::kExponentBits) - 1) << Format<TypeParam>::kFractionBits;
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(TypeParam(infinity).bits, kInfinity);
  EXPECT_EQ(TypeParam(-infinity).bits, kInfinity | 0x8000);
  EXPECT_EQ(TypeParam(1e300).bits, kInfinity);
  EXPECT_EQ(TypeParam(std::numeric_limits<float>::infinity()).bits, kInfinity);
  EXPECT_EQ(TypeParam(std::numeric_limits<double>::denorm_min()).bits, 0);
  EXPECT_EQ(TypeParam(-std::numeric_limits<double>::denorm_min()).bits, 0x8000);
  EXPECT_EQ(TypeParam(-0.0).bits, 0x8000);
  EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(std::numeric_limits<double>::quiet_NaN()))));
  EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(std::numeric_limits<double>::signaling_NaN()))));
}

TEST(DType, SizesAndNames) {
  EXPECT_EQ(size_of(DType::f64), 8U);
  EXPECT_EQ(size_of(DType::f32), 4U);
  EXPECT_EQ(size_of(DType::f16), 2U);
  EXPECT_EQ(size_of(DType::bf16), 2U);
  EXPECT_EQ(size_of(DType::i64), 8U);
  EXPECT_EQ(size_of(DType::i32), 4U);
  EXPECT_EQ(size_of(DType::boolean), 1U);
  EXPECT_EQ(size_of(DType::none), 0U);
  EXPECT_EQ(size_of(static_cast<DType>(200)), 0U);
  EXPECT_STREQ(name(DType::bf16), "bf16");
  EXPECT_STREQ(name(DType::boolean), "bool");
  EXPECT_STREQ(name(static_cast<DType>(200)), "unknown DType");
}

}  // namespace
