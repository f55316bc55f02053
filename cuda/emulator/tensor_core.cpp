#include <bit>
#include <cmath>
#include <cstring>

#include "cuda/emulator/collective.h"
#include "cuda/emulator/device.h"

/// Instructions that a warp executes as one, for tensor cores. Which lane holds what: PTX ISA, "Matrix Fragments for
/// mma.m16n8k16 with floating point type" and "ldmatrix".
namespace sorot::inline v0::emulator {
namespace {

constexpr std::size_t kRows = 16;
constexpr std::size_t kColumns = 8;
constexpr std::size_t kDepth = 16;

/// What a lane brings to a multiplication. A lane has two neighbours of a row, or of a column of b, in a register, and
/// pairs (lane % 4); its row, or column of b, is lane / 4.
struct Fragments {
  float* d;
  const std::uint32_t* a;
  std::uint32_t b[2];
};

/// One branch-free expression each, so that loops over them are vectorised.
float widened(HalfType type, std::uint16_t bits) {
  if (type == HalfType::bf16) return std::bit_cast<float>(std::uint32_t{bits} << 16);
  constexpr std::uint32_t kExponent = 0x7C00U << 13;
  const std::uint32_t magnitude = (bits & 0x7FFFU) << 13;
  const auto finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);  // exponent bias
  const std::uint32_t wide = magnitude >= kExponent ? magnitude | 0x7F80'0000U : finite;
  return std::bit_cast<float>(wide | (bits & 0x8000U) << 16);
}

template <std::size_t kCount>
void widen(HalfType type, const std::uint16_t (&from)[kCount], double (&to)[kCount]) {
  if (type == HalfType::bf16) {
    for (std::size_t i = 0; i < kCount; ++i) to[i] = static_cast<double>(widened(HalfType::bf16, from[i]));
  } else {
    for (std::size_t i = 0; i < kCount; ++i) to[i] = static_cast<double>(widened(HalfType::f16, from[i]));
  }
}

/// As tensor cores round: excess digits are cut off, and what needs a larger exponent than f32 has is infinite.
float truncated(double x) {
  const auto nearest = static_cast<float>(x);
  const bool larger = std::abs(static_cast<double>(nearest)) > std::abs(x) && std::abs(x) < 0x1p128;
  return larger ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) - 1) : nearest;
}

void multiply(HalfType type, void** lanes) {
  std::uint16_t a_bits[kRows * kDepth];
  std::uint16_t b_bits[kDepth * kColumns];
  double sums[kRows][kColumns];
  for (std::size_t lane = 0; lane < machine::kWarpSize; ++lane) {
    const Fragments& mine = *static_cast<const Fragments*>(lanes[lane]);
    const std::size_t row = lane / 4;
    const std::size_t pair = lane % 4 * 2;
    for (std::size_t i = 0; i < 4; ++i) {
      std::uint16_t* const to = a_bits + (row + i % 2 * 8) * kDepth + pair + i / 2 * 8;
      to[0] = static_cast<std::uint16_t>(mine.a[i]);
      to[1] = static_cast<std::uint16_t>(mine.a[i] >> 16);
      sums[row + i / 2 * 8][pair + i % 2] = static_cast<double>(mine.d[i]);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      std::uint16_t* const to = b_bits + (pair + i * 8) * kColumns + row;
      to[0] = static_cast<std::uint16_t>(mine.b[i]);
      to[kColumns] = static_cast<std::uint16_t>(mine.b[i] >> 16);
    }
  }
  double a[kRows * kDepth];
  double b[kDepth * kColumns];
  widen(type, a_bits, a);
  widen(type, b_bits, b);
  for (std::size_t m = 0; m < kRows; ++m) {
    for (std::size_t k = 0; k < kDepth; ++k) {
      for (std::size_t n = 0; n < kColumns; ++n) sums[m][n] += a[m * kDepth + k] * b[k * kColumns + n];
    }
  }
  for (std::size_t lane = 0; lane < machine::kWarpSize; ++lane) {
    float* const d = static_cast<const Fragments*>(lanes[lane])->d;
    for (std::size_t i = 0; i < 4; ++i) d[i] = truncated(sums[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2]);
  }
}

}  // namespace

void mma_m16n8k16(HalfType type, float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                  Site site) {
  need_architecture(80, "mma_m16n8k16", site);
  Fragments mine{d, a, {b0, b1}};
  collective("mma_m16n8k16", machine::kFullWarp, &mine, site, [&](void** lanes) {
    multiply(type, lanes);
    if (engine.settings.count) engine.counters.instruction("mma_m16n8k16", site);
  });
}

void ldmatrix_x4(const char* instruction, bool transposed, std::uint32_t row, std::uint32_t (&r)[4], Site site) {
  struct Lane {
    const std::byte* row;
    std::uint32_t* r;
  };
  constexpr std::size_t kRowBytes = 16;
  Lane mine{at_shared_address(row), r};
  check_shared(mine.row, kRowBytes, Access::read, instruction, site);
  collective(instruction, machine::kFullWarp, &mine, site, [&](void** lanes) {
    for (unsigned lane = 0; lane < machine::kWarpSize; ++lane) {
      std::uint32_t* const to = static_cast<const Lane*>(lanes[lane])->r;
      for (unsigned matrix = 0; matrix < 4; ++matrix) {
        const auto read = [&](unsigned i, unsigned byte, void* value, std::size_t bytes) {
          std::memcpy(value, static_cast<const Lane*>(lanes[matrix * 8 + i])->row + byte, bytes);
        };
        if (!transposed) {
          read(lane / 4, lane % 4 * 4, to + matrix, 4);
          continue;
        }
        std::uint16_t pair[2];
        for (unsigned i = 0; i < 2; ++i) read(lane % 4 * 2 + i, lane / 4 * 2, pair + i, 2);
        to[matrix] = pair[0] | std::uint32_t{pair[1]} << 16;
      }
    }
  });
}

}  // namespace sorot::inline v0::emulator
