#include "tests/support/storage.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace sorot::support {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Storage, RoundsToNearestEven) {
  EXPECT_EQ(round_to(DType::f16, 1 + 0x1p-11), 1);               // a tie goes to the even neighbour below
  EXPECT_EQ(round_to(DType::f16, 1 + 3 * 0x1p-11), 1 + 0x1p-9);  // and to the one above
  EXPECT_EQ(round_to(DType::f16, 1 + 0x1.01p-11), 1 + 0x1p-10);
  EXPECT_EQ(round_to(DType::bf16, -1 - 0x1p-8), -1);
  EXPECT_EQ(round_to(DType::bf16, 3.14159), 3.140625);
}

TEST(Storage, OverflowsToInfinityOnlyFromHalfAStepBeyondTheLargest) {
  EXPECT_EQ(round_to(DType::f16, 65504), 65504);
  EXPECT_EQ(round_to(DType::f16, 65519.99), 65504);
  EXPECT_EQ(round_to(DType::f16, 65520), kInfinity);
  EXPECT_EQ(round_to(DType::bf16, -3.4e38), -kInfinity);
  EXPECT_EQ(round_to(DType::bf16, 3.39e38), largest(DType::bf16));
  EXPECT_TRUE(std::isnan(round_to(DType::f16, std::nan(""))));
}

TEST(Storage, KeepsSubnormals) {
  EXPECT_EQ(round_to(DType::f16, 0x1p-24), 0x1p-24);
  EXPECT_EQ(round_to(DType::f16, 0x1p-25), 0);
  EXPECT_EQ(round_to(DType::f16, 0x1.8p-25), 0x1p-24);
  EXPECT_EQ(round_to(DType::bf16, 0x1p-133), 0x1p-133);
}

TEST(Storage, EveryPatternSurvivesReadingAndWriting) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (unsigned bits = 0; bits <= 0xFFFF; ++bits) {
      std::array<std::byte, 2> element;
      const auto pattern = static_cast<std::uint16_t>(bits);
      std::memcpy(element.data(), &pattern, 2);
      const double value = decode(dtype, element.data());
      if (std::isnan(value)) continue;
      EXPECT_EQ(round_to(dtype, value), value);
      std::array<std::byte, 2> again;
      encode(dtype, value, again.data());
      ASSERT_EQ(element, again) << name(dtype) << " 0x" << std::hex << bits;
    }
  }
}

TEST(Storage, AgreesWithTheLibrarysTypes) {
  for (unsigned bits = 0; bits <= 0xFFFF; ++bits) {
    const auto half = float16::from_bits(static_cast<std::uint16_t>(bits));
    const auto brain = bfloat16::from_bits(static_cast<std::uint16_t>(bits));
    std::array<std::byte, 2> element;
    std::memcpy(element.data(), &half, 2);
    const double as_half = decode(DType::f16, element.data());
    const double as_brain = decode(DType::bf16, element.data());
    EXPECT_TRUE(as_half == static_cast<double>(half) || (std::isnan(as_half) && std::isnan(static_cast<double>(half))));
    EXPECT_TRUE(as_brain == static_cast<double>(brain) ||
                (std::isnan(as_brain) && std::isnan(static_cast<double>(brain))));
  }
}

}  // namespace
}  // namespace sorot::support
