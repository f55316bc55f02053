#include "tests/support/storage.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace sorot::support {
namespace {

/// A 16-bit IEEE-like format.
struct Format {
  int fraction_bits;
  int max_exponent;  ///< largest e with 2^e representable
};
constexpr Format kF16{10, 15};
constexpr Format kBf16{7, 127};

const Format& format_of(DType dtype) { return dtype == DType::f16 ? kF16 : kBf16; }

double largest_of(const Format& format) {
  return std::ldexp(2.0 - std::ldexp(1.0, -format.fraction_bits), format.max_exponent);
}

/// Exponent of the spacing of the format's numbers around x: fixed once x is subnormal.
int spacing_exponent(const Format& format, double x) {
  int exponent;
  std::frexp(x, &exponent);  // |x| in [0.5, 1) * 2^exponent
  return std::max(exponent - 1, 1 - format.max_exponent) - format.fraction_bits;
}

double round_to_format(const Format& format, double x) {
  if (!std::isfinite(x) || x == 0) return x;
  const int spacing = spacing_exponent(format, x);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -spacing)), spacing);
  return std::fabs(rounded) > largest_of(format) ? std::copysign(std::numeric_limits<double>::infinity(), x) : rounded;
}

/// Bits of a number the format holds exactly.
std::uint16_t bits_of(const Format& format, double x) {
  const int exponent_bits = 15 - format.fraction_bits;
  const unsigned all_ones = (1U << exponent_bits) - 1;
  const unsigned sign = std::signbit(x) ? 0x8000U : 0U;
  if (std::isnan(x)) {
    return static_cast<std::uint16_t>(sign | all_ones << format.fraction_bits | 1U << (format.fraction_bits - 1));
  }
  if (std::isinf(x)) return static_cast<std::uint16_t>(sign | all_ones << format.fraction_bits);
  if (x == 0) return static_cast<std::uint16_t>(sign);
  // Counting in units of the smallest subnormal, a step up is a step in the bits: the exponent field adds one
  // doubling of the unit each, beginning with the second binade.
  const int spacing = spacing_exponent(format, x);
  const int binade = spacing - (1 - format.max_exponent - format.fraction_bits);
  const auto units = static_cast<unsigned>(std::ldexp(std::fabs(x), -spacing));
  return static_cast<std::uint16_t>(sign | (units + (static_cast<unsigned>(binade) << format.fraction_bits)));
}

double value_of(const Format& format, std::uint16_t bits) {
  const unsigned fraction = bits & ((1U << format.fraction_bits) - 1);
  const unsigned exponent = (bits & 0x7FFFU) >> format.fraction_bits;
  const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
  if (exponent == (1U << (15 - format.fraction_bits)) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  const int subnormal_exponent = 1 - format.max_exponent - format.fraction_bits;
  if (exponent == 0) return sign * std::ldexp(fraction, subnormal_exponent);
  const double significand = static_cast<double>(fraction + (1U << format.fraction_bits));
  return sign * std::ldexp(significand, subnormal_exponent + static_cast<int>(exponent) - 1);
}

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void write(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace

double round_to(DType dtype, double x) {
  switch (dtype) {
    case DType::f64: return x;
    case DType::f32: return static_cast<double>(static_cast<float>(x));
    case DType::f16:
    case DType::bf16: return round_to_format(format_of(dtype), x);
    default: throw std::invalid_argument("round_to: not a floating type");
  }
}

double ulp(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-52;
    case DType::f32: return 0x1p-23;
    case DType::f16:
    case DType::bf16: return std::ldexp(1.0, -format_of(dtype).fraction_bits);
    default: throw std::invalid_argument("ulp: not a floating type");
  }
}

double largest(DType dtype) {
  switch (dtype) {
    case DType::f64: return std::numeric_limits<double>::max();
    case DType::f32: return static_cast<double>(std::numeric_limits<float>::max());
    case DType::f16:
    case DType::bf16: return largest_of(format_of(dtype));
    default: throw std::invalid_argument("largest: not a floating type");
  }
}

void encode(DType dtype, double value, std::byte* to) {
  switch (dtype) {
    case DType::f64: write(to, value); return;
    case DType::f32: write(to, static_cast<float>(value)); return;
    case DType::f16:
    case DType::bf16: write(to, bits_of(format_of(dtype), round_to(dtype, value))); return;
    case DType::i64: write(to, static_cast<std::int64_t>(value)); return;
    case DType::i32: write(to, static_cast<std::int32_t>(value)); return;
    case DType::boolean: write(to, static_cast<std::uint8_t>(value)); return;
    default: throw std::invalid_argument("encode: no such type");
  }
}

double decode(DType dtype, const std::byte* from) {
  switch (dtype) {
    case DType::f64: return read<double>(from);
    case DType::f32: return static_cast<double>(read<float>(from));
    case DType::f16:
    case DType::bf16: return value_of(format_of(dtype), read<std::uint16_t>(from));
    case DType::i64: return static_cast<double>(read<std::int64_t>(from));
    case DType::i32: return static_cast<double>(read<std::int32_t>(from));
    case DType::boolean: return read<std::uint8_t>(from) != 0 ? 1.0 : 0.0;
    default: throw std::invalid_argument("decode: no such type");
  }
}

bool is_floating(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

}  // namespace sorot::support
