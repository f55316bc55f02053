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

/// A row of sums, which is added to as a whole.
using Row = double __attribute__((vector_size(kColumns * sizeof(double))));

/// What a lane brings to a multiplication. A lane has two neighbours of a row, or of a column of b, in a register, and
/// pairs (lane % 4); its row, or column of b, is lane / 4.
struct Fragments {
  float* d;
  const std::uint32_t* a;
  std::uint32_t b[2];
};

/// Exact. No branches, and words of one size, so that the loop is vectorised.
template <std::size_t kCount>
void widen(HalfType type, std::uint32_t (&words)[kCount]) {
  if (type == HalfType::bf16) {
    for (std::uint32_t& word : words) word <<= 16;
    return;
  }
  for (std::uint32_t& word : words) {
    const std::uint32_t magnitude = (word & 0x7FFFU) << 13;
    const auto finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);  // exponent bias
    const std::uint32_t not_finite = (word & 0x7C00U) == 0x7C00U ? 0x7F80'0000U : 0;
    word = finite | not_finite | (word & 0x8000U) << 16;
  }
}

/// As tensor cores round: excess digits are cut off, and what needs a larger exponent than f32 has is infinite.
float truncated(double x) {
  const auto nearest = static_cast<float>(x);
  const bool larger = std::abs(static_cast<double>(nearest)) > std::abs(x) && std::abs(x) < 0x1p128;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) - (larger ? 1U : 0U));
}

void multiply(HalfType type, void** lanes) {
  std::uint32_t a[kRows * kDepth];
  std::uint32_t b[kDepth * kColumns];
  Row sums[kRows];
  for (std::size_t lane = 0; lane < machine::kWarpSize; ++lane) {
    const Fragments& mine = *static_cast<const Fragments*>(lanes[lane]);
    const std::size_t row = lane / 4;
    const std::size_t pair = lane % 4 * 2;
    for (std::size_t i = 0; i < 4; ++i) {
      std::uint32_t* const to = a + (row + i % 2 * 8) * kDepth + pair + i / 2 * 8;
      to[0] = mine.a[i] & 0xFFFFU;
      to[1] = mine.a[i] >> 16;
      sums[row + i / 2 * 8][pair + i % 2] = static_cast<double>(mine.d[i]);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      std::uint32_t* const to = b + (pair + i * 8) * kColumns + row;
      to[0] = mine.b[i] & 0xFFFFU;
      to[kColumns] = mine.b[i] >> 16;
    }
  }
  widen(type, a);
  widen(type, b);
  Row factors[kDepth];
  for (std::size_t k = 0; k < kDepth; ++k) {
    for (std::size_t n = 0; n < kColumns; ++n) {
      factors[k][n] = static_cast<double>(std::bit_cast<float>(b[k * kColumns + n]));
    }
  }
  float d[kRows * kColumns];
  for (std::size_t m = 0; m < kRows; ++m) {
    for (std::size_t k = 0; k < kDepth; ++k) {
      sums[m] += static_cast<double>(std::bit_cast<float>(a[m * kDepth + k])) * factors[k];
    }
    for (std::size_t n = 0; n < kColumns; ++n) d[m * kColumns + n] = truncated(sums[m][n]);
  }
  for (std::size_t lane = 0; lane < machine::kWarpSize; ++lane) {
    const float* const row = d + lane / 4 * kColumns + lane % 4 * 2;
    float* const to = static_cast<const Fragments*>(lanes[lane])->d;
    std::memcpy(to, row, 2 * sizeof(float));
    std::memcpy(to + 2, row + 8 * kColumns, 2 * sizeof(float));
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
