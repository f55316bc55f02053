#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "sorot/export.h"

namespace sorot {
inline namespace v0 {

/// Type of a tensor's elements.
enum class DType : std::uint8_t {
  none = 0,  ///< only in a default-constructed (absent) view
  f64,
  f32,
  f16,   ///< IEEE binary16
  bf16,  ///< upper half of an IEEE binary32
  i64,
  i32,
  boolean,  ///< one byte, non-zero is true
};

/// Bytes of one element; 0 for DType::none and values that are no DType.
SOROT_API std::size_t size_of(DType dtype) noexcept;

/// "f32", "bf16", "bool" ...; "unknown DType" for a value that is none.
SOROT_API const char* name(DType dtype) noexcept;

namespace detail {

/// Bits of the binary float with that many exponent and fraction bits nearest to x, ties to even.
/// Overflow gives infinity, NaN stays a (quiet) NaN, subnormals are kept.
template <int kExponentBits, int kFractionBits>
inline std::uint16_t round_to_bits(double x) noexcept {
  constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  constexpr int kMinExponent = 1 - kBias;
  constexpr std::uint64_t kInfinity = ((std::uint64_t{1} << kExponentBits) - 1) << kFractionBits;

  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const std::uint64_t sign = bits >> 63 << (kExponentBits + kFractionBits);
  const std::uint64_t fraction = bits & 0xF'FFFF'FFFF'FFFF;
  const int exponent = static_cast<int>(bits >> 52 & 0x7FF) - 1023;

  if (exponent == 1024 && fraction != 0) {  // NaN: keep the top of the payload, set the quiet bit
    return static_cast<std::uint16_t>(sign | kInfinity | fraction >> (52 - kFractionBits) |
                                      std::uint64_t{1} << (kFractionBits - 1));
  }
  if (exponent > kBias) return static_cast<std::uint16_t>(sign | kInfinity);

  // Below the smallest normal number more of the significand falls off the end.
  const bool subnormal = exponent < kMinExponent;
  const int dropped = 52 - kFractionBits + (subnormal ? kMinExponent - exponent : 0);
  if (dropped > 53) return static_cast<std::uint16_t>(sign);  // under half of the smallest subnormal
  const std::uint64_t significand = fraction | std::uint64_t{1} << 52;
  const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  const std::uint64_t kept = significand >> dropped;
  const std::uint64_t rest = significand & (2 * half - 1);
  const std::uint64_t rounded = kept + ((rest > half || (rest == half && (kept & 1))) ? 1 : 0);

  // The significand's leading one adds 1 to the exponent field, and a carry out of rounding does the same.
  const std::uint64_t field = subnormal ? 0 : static_cast<std::uint64_t>(exponent + kBias - 1);
  return static_cast<std::uint16_t>(sign | ((field << kFractionBits) + rounded));
}

}  // namespace detail

/// IEEE binary16 storage. Converts from float and double in one rounding (nearest even); widening is exact.
struct float16 {
  std::uint16_t bits;

  float16() = default;
  explicit float16(double x) noexcept : bits(detail::round_to_bits<5, 10>(x)) {}
  explicit float16(float x) noexcept : float16(static_cast<double>(x)) {}

  static float16 from_bits(std::uint16_t bits) noexcept {
    float16 h;
    h.bits = bits;
    return h;
  }

  explicit operator float() const noexcept {
    const std::uint32_t sign = std::uint32_t{bits} >> 15 << 31;
    const std::uint32_t exponent = bits >> 10 & 0x1F;
    const std::uint32_t fraction = bits & 0x3FF;
    if (exponent == 0) {  // zero or subnormal: a multiple of 2^-24
      const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
      return sign != 0 ? -magnitude : magnitude;
    }
    const std::uint32_t wide = sign | (exponent == 0x1F ? 0xFFU : exponent + 112) << 23 | fraction << 13;
    float x;
    std::memcpy(&x, &wide, sizeof x);
    return x;
  }
  explicit operator double() const noexcept { return static_cast<double>(static_cast<float>(*this)); }
};

/// Upper half of an IEEE binary32. Converts from float and double in one rounding (nearest even); widening is exact.
struct bfloat16 {
  std::uint16_t bits;

  bfloat16() = default;
  explicit bfloat16(double x) noexcept : bits(detail::round_to_bits<8, 7>(x)) {}
  explicit bfloat16(float x) noexcept : bfloat16(static_cast<double>(x)) {}

  static bfloat16 from_bits(std::uint16_t bits) noexcept {
    bfloat16 h;
    h.bits = bits;
    return h;
  }

  explicit operator float() const noexcept {
    const std::uint32_t wide = std::uint32_t{bits} << 16;
    float x;
    std::memcpy(&x, &wide, sizeof x);
    return x;
  }
  explicit operator double() const noexcept { return static_cast<double>(static_cast<float>(*this)); }
};

static_assert(sizeof(float16) == 2 && sizeof(bfloat16) == 2);

}  // namespace v0
}  // namespace sorot
