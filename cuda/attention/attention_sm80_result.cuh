#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cuda/attention/attention_rows.cuh"
#include "cuda/attention/attention_sm80.h"
#include "cuda/attention/attention_sm80_scores.cuh"
#include "cuda/attention/attention_sm80_softmax.cuh"
#include "cuda/machine/isa.cuh"
#include "cuda/tile/convert.cuh"
#include "cuda/tile/online_softmax.cuh"
#include "cuda/tile/swizzle.cuh"

/// What attention_sm80 writes, and how it mends what tensor cores spoil: 0 * NaN is NaN, so a v that only *some* rows
/// of a tile attend, or a sum beyond the largest float, can make numbers of other rows not finite.
///
///   fast    writes all. If a number that should be finite is not, three more attempts follow:
///   taint   P = 1 where a pair is attended, V = 1 where v is not finite: numbers that are not finite but have no such
///           pair behind them become 0; those that have one are right, and stay
///   scaled  V without what is not finite, times 2^-40: every finite number is replaced by this one
///   clean   V without what is not finite: and by this one, the same bits as from `fast` where that was right, unless
///   it
///           has left the range of a sum
namespace sorot::inline v0::cuda {

inline constexpr float kSm80Shrink = 0x1p-40F;  ///< 2^8 of P, 2^31 keys
inline constexpr float kSm80Grow = 0x1p40F;

/// One element of V for an attempt.
template <class T>
__device__ __forceinline__ T repaired(Sm80Attempt attempt, T element) {
  const float value = machine::to_float(element);
  const bool finite = tile::is_finite(value);
  if (attempt == Sm80Attempt::taint) return machine::from_float<T>(finite ? 0.0F : 1.0F);
  if (!finite) return machine::from_float<T>(0.0F);
  // Sums of f16 do not leave the range of f32, and smaller ones would be lost.
  if (attempt == Sm80Attempt::scaled && sizeof(T) == 2 && !std::is_same_v<T, float16>) {
    return machine::from_float<T>(value * kSm80Shrink);
  }
  return element;
}

/// A tile of V in shared memory, by all threads of the block.
template <class Traits>
__device__ __forceinline__ void repair_values(Sm80Attempt attempt, unsigned char* tile, int thread) {
  using T = typename Traits::Element;
  constexpr int kWords = Traits::kBlockN * Traits::kValueDim / 2;
  auto* words = reinterpret_cast<std::uint32_t*>(tile);
#pragma unroll 1
  for (int n = thread; n < kWords; n += Traits::kThreads) {
    const std::uint32_t word = machine::load_shared(words + n);
    const T low = repaired(attempt, machine::bits_as<T>(static_cast<std::uint16_t>(word)));
    const T high = repaired(attempt, machine::bits_as<T>(static_cast<std::uint16_t>(word >> 16)));
    machine::store_shared(words + n, std::uint32_t{machine::bits_as<std::uint16_t>(low)} |
                                         std::uint32_t{machine::bits_as<std::uint16_t>(high)} << 16);
  }
}

/// A row at its end.
struct Sm80RowEnd {
  bool zero;    ///< no key: out is 0 whatever v holds
  float scale;  ///< of acc: 1 / Z
  float lse;
  float reference, z;  ///< for the weights
};

/// Joins what the 4 threads of a row have, and its sink; `row` is one that exists.
template <class Traits>
__device__ __forceinline__ Sm80RowEnd end_row(const AttentionSm80Params& p, float sink, const Sm80State<Traits>& state,
                                              int m, int h) {
  float z = state.z[m][h];
  z += machine::shuffle_xor(z, 1);
  z += machine::shuffle_xor(z, 2);
  const float limit = state.limit[m][h];
  const bool empty = limit == tile::minus_infinity() && !tile::is_nan(z);
  const float scale = Traits::kGeneral ? 1.0F : p.scale;
  const float natural = state.large != 0 ? tile::safe_maximum(limit) * scale : state.reference[m][h] * tile::kLn2;
  Sm80RowEnd end;
  end.reference = state.large != 0 ? natural : state.reference[m][h];
  end.lse = empty ? tile::minus_infinity() : natural + machine::log(z);
  if constexpr (Traits::kGeneral) {
    // What 2 is raised to for the sink, had it been a score.
    const float x =
        state.large != 0 ? (sink - natural) * tile::kLog2E : machine::fma(sink, tile::kLog2E, -state.reference[m][h]);
    if (!(sink < tile::infinity())) {
      end.lse = z = tile::not_a_number();
    } else if (empty) {
      end.lse = sink;
    } else {
      // Beyond 2^127 Z is infinite, and weights and out are 0 to the last digit; only lse must not notice.
      const float joined = z + machine::exp2_approx(x);
      end.lse =
          x > 0 ? sink + machine::log(machine::fma(z, machine::exp2_approx(-x), 1.0F)) : natural + machine::log(joined);
      z = joined;
    }
  }
  end.zero = empty && !tile::is_nan(z);
  end.z = end.zero ? 1.0F : z;
  end.scale = 1.0F / end.z;
  return end;
}

/// What later attempts leave as it is. Conversions give other NaNs.
inline constexpr std::uint16_t kSm80Leave = 0xFFFF;

/// One element of out: what an attempt makes of the one before.
template <class T>
__device__ __forceinline__ std::uint16_t mended(Sm80Attempt attempt, std::uint16_t before, std::uint16_t now) {
  const bool finite = tile::is_finite(machine::to_float(machine::bits_as<T>(before)));
  if (attempt == Sm80Attempt::taint) return !finite && now == 0 ? std::uint16_t{0} : before;
  return finite && now != kSm80Leave ? now : before;
}
template <class T>
__device__ __forceinline__ std::uint32_t mended_pair(Sm80Attempt attempt, std::uint32_t before, std::uint32_t now) {
  const auto low = mended<T>(attempt, static_cast<std::uint16_t>(before), static_cast<std::uint16_t>(now));
  const auto high = mended<T>(attempt, static_cast<std::uint16_t>(before >> 16), static_cast<std::uint16_t>(now >> 16));
  return std::uint32_t{low} | std::uint32_t{high} << 16;
}

/// What an attempt after `fast` has to say of one number.
template <class T>
__device__ __forceinline__ std::uint16_t staged_number(Sm80Attempt attempt, float acc, const Sm80RowEnd& end) {
  if (attempt == Sm80Attempt::taint) return machine::bits_as<std::uint16_t>(machine::from_float<T>(acc));
  if (tile::is_nan(end.z)) return machine::bits_as<std::uint16_t>(machine::from_float<T>(tile::not_a_number()));
  float mean = end.zero ? 0.0F : acc * end.scale;
  if (!tile::is_finite(mean)) return kSm80Leave;
  if (attempt == Sm80Attempt::scaled && !std::is_same_v<T, float16>) mean = tile::mean_from(mean * kSm80Grow, mean);
  return machine::bits_as<std::uint16_t>(machine::from_float<T>(mean));
}

/// All that the block writes. True if a number of the thread is not finite, and its row gives no reason for it.
///
/// Lane l of a warp looks after its row l: where out, lse and the sums are. out goes by way of shared memory, in place
/// of the warp's own rows of Q, so that 16 bytes are stored at a time.
template <class Traits>
__device__ __forceinline__ bool write_result(const AttentionSm80Params& p, const RowBlock& block, Sm80Attempt attempt,
                                             const Sm80Place<Traits>& place, Sm80Storage<Traits>& storage,
                                             const Sm80State<Traits>& state) {
  using T = typename Traits::Element;
  using Layout = tile::Swizzle<Traits::kValueDim>;
  const int my_row = place.first_row + place.lane;
  const bool mine_exists = place.lane < 16 * Traits::kM && my_row < block.rows;
  const HeadAndQuery at = block.at(p, mine_exists ? my_row : 0);
  const float my_sink = load_sink(p, at.head);

  unsigned char* staged = storage.q + place.first_row * Traits::kHeadDim * 2;
  machine::sync_warp();  // all lanes have read what they wanted of Q
  bool wrong = false;
  Sm80RowEnd mine{};
#pragma unroll
  for (int m = 0; m < Traits::kM; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = 16 * m + 8 * h + place.lane / 4;  // of the warp
      const float sink = Traits::kGeneral ? machine::shuffle(my_sink, static_cast<unsigned>(row)) : 0.0F;
      const Sm80RowEnd end = end_row<Traits>(p, sink, state, m, h);
      const auto holder = static_cast<unsigned>(place.lane % 8 * 4);
      const Sm80RowEnd held{false, 0, machine::shuffle(end.lse, holder), machine::shuffle(end.reference, holder),
                            machine::shuffle(end.z, holder)};
      if (place.lane / 8 == 2 * m + h) mine = held;
      auto* to = reinterpret_cast<std::uint32_t*>(staged) + place.quad;
      if (attempt == Sm80Attempt::fast) {
        float poison = 0;  // NaN after a number that is not finite
#pragma unroll
        for (int n = 0; n < Traits::kVN; ++n) {
          const float(&acc)[4] = state.acc[m][n];
          const float low = end.zero ? 0.0F : acc[2 * h] * end.scale;
          const float high = end.zero ? 0.0F : acc[2 * h + 1] * end.scale;
          poison = machine::fma(low, 0.0F, machine::fma(high, 0.0F, poison));
          machine::store_shared(to + Layout::at(row, n) / sizeof *to, machine::from_floats<T>(low, high));
        }
        const bool exists = place.first_row + row < block.rows;
        wrong = wrong || (exists && tile::is_nan(poison) && !tile::is_nan(end.z));
      } else {
#pragma unroll
        for (int n = 0; n < Traits::kVN; ++n) {
          const float(&acc)[4] = state.acc[m][n];
          const std::uint32_t low = staged_number<T>(attempt, acc[2 * h], end);
          const std::uint32_t high = staged_number<T>(attempt, acc[2 * h + 1], end);
          machine::store_shared(to + Layout::at(row, n) / sizeof *to, low | high << 16);
        }
      }
    }
  }
  if (attempt == Sm80Attempt::fast && mine_exists) {
    if (p.lse != nullptr) {
      machine::store_global(
          p.lse + block.batch * p.lse_strides[0] + at.head * p.lse_strides[1] + at.query * p.lse_strides[2], mine.lse);
    }
    if (p.row_sums != nullptr) {
      machine::store_global(p.row_sums + block.number(p, my_row),
                            machine::Float4{mine.reference, mine.z, static_cast<float>(state.large), 0.0F});
    }
  }
  machine::sync_warp();
  const auto my_offset = machine::bits_as<std::uint64_t>(row_offset(p.out_strides, block, at));
  constexpr int kLanes = Layout::kGroup;
#pragma unroll 1
  for (int row = place.lane / kLanes; row < 16 * Traits::kM; row += 32 / kLanes) {
    const auto low = machine::shuffle(static_cast<std::uint32_t>(my_offset), static_cast<unsigned>(row));
    const auto high = machine::shuffle(static_cast<std::uint32_t>(my_offset >> 32), static_cast<unsigned>(row));
    T* out = static_cast<T*>(p.out) + machine::bits_as<std::int64_t>(std::uint64_t{high} << 32 | low);
    if (place.first_row + row >= block.rows) continue;
#pragma unroll 1
    for (int chunk = place.lane % kLanes; chunk < p.value_chunks; chunk += kLanes) {
      auto* to = reinterpret_cast<machine::Word4*>(out) + chunk;
      auto now = machine::load_shared(reinterpret_cast<const machine::Word4*>(staged + Layout::at(row, chunk)));
      if (attempt != Sm80Attempt::fast) {
        const machine::Word4 before = machine::load_global(static_cast<const machine::Word4*>(to));
        now = {mended_pair<T>(attempt, before.x, now.x), mended_pair<T>(attempt, before.y, now.y),
               mended_pair<T>(attempt, before.z, now.z), mended_pair<T>(attempt, before.w, now.w)};
      }
      machine::store_global(to, now);
    }
  }
  return wrong;
}

}  // namespace sorot::inline v0::cuda
