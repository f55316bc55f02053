#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cuda/attention/attention_rows.cuh"
#include "cuda/attention/attention_sm80.h"
#include "cuda/machine/isa.cuh"
#include "cuda/tile/convert.cuh"
#include "cuda/tile/online_softmax.cuh"
#include "cuda/tile/swizzle.cuh"
#include "cuda/tile/tanh.cuh"

/// Scores of one tile on tensor cores, for the kernels of attention_sm80.
///
/// A warp has kM times 16 rows. Of the accumulators of m16n8k16, thread `lane` has rows lane / 4 and lane / 4 + 8 and
/// columns 2 (lane % 4) and its neighbour of each of 8 blocks of 8 columns: 16 keys a row. In the plain kernel column =
/// key. In the others keys are interleaved (tile/swizzle.cuh), so that a thread's 16 keys are neighbours in memory, and
/// mask and bias are read 16 bytes at a time.
namespace sorot::inline v0::cuda {

/// Sizes of one instantiation, all known to the compiler.
template <class T, bool kIsGeneral, bool kIsWeights, std::size_t kTileIndex>
struct Sm80Traits {
  using Element = T;
  static constexpr bool kGeneral = kIsGeneral;  ///< also: keys are interleaved
  static constexpr Sm80Tile kTile = kIsWeights ? kSm80WeightsTiles[kTileIndex] : kSm80Tiles[kTileIndex];
  static constexpr int kHeadDim = kTile.head_dim;
  static constexpr int kValueDim = kTile.value_dim;
  static constexpr int kBlockM = kTile.queries;
  static constexpr int kBlockN = kSm80Keys;
  static constexpr int kThreads = kTile.threads();
  static constexpr int kM = kBlockM / kTile.warps / 16;  ///< m16 tiles of a warp
  static constexpr int kN = kBlockN / 8;                 ///< n8 blocks of a score tile
  static constexpr int kKSteps = kHeadDim / 16;
  static constexpr int kVN = kValueDim / 8;
  static constexpr bool kQInRegisters = kHeadDim <= 64 && !kIsWeights;
  static constexpr bool kKeepAddresses = kHeadDim <= 64 && !kIsWeights;  ///< of ldmatrix: there are registers for them
  static constexpr std::size_t kSharedBytes = sm80_shared_bytes(kTile, kGeneral);

  static_assert(kM == 1 || kM == 2);
  static_assert(kBlockM % (16 * kTile.warps) == 0 && kHeadDim >= kValueDim && kHeadDim % 32 == 0);
};

/// The columns that a score tile stands for.
template <bool kInterleaved>
__device__ __forceinline__ int key_of(int quad, int n, int c) {
  return kInterleaved ? 16 * quad + 2 * n + c : 8 * n + 2 * quad + c;
}

/// Keys first .. end - 1 may be attended, as far as positions go.
struct alignas(8) Sm80KeyRange {
  std::int32_t first, end;
};

/// Tiles begin .. end - 1 have keys that some row attends; of clean_begin .. clean_end - 1 every row attends every key.
struct alignas(16) Sm80Tiles {
  std::int32_t begin, end, clean_begin, clean_end;
};

/// What the general kernel must know of every row.
template <std::size_t kRows>
struct Sm80RowFacts {
  const void* bias[kRows];          ///< where the row's bias for key 0 is
  const std::uint8_t* mask[kRows];  ///< and its mask
  float slope[kRows];
  std::int32_t query[kRows];
  std::int64_t shift;  ///< o in p = i + o
};
struct Sm80NoFacts {};

template <class Traits>
struct Sm80Storage {
  alignas(
      1024) unsigned char q[Traits::kBlockM * Traits::kHeadDim * 2];  ///< and at the end out, each warp in its own rows
  alignas(1024) unsigned char k[Traits::kBlockN * Traits::kHeadDim * 2];
  alignas(1024) unsigned char v[Traits::kBlockN * Traits::kValueDim * 2];
  Sm80Tiles tiles;  ///< of the block
  Sm80Tiles warp_tiles[Traits::kTile.warps];
  Sm80KeyRange keys;  ///< that some row of the block attends
  Sm80KeyRange row_keys[Traits::kBlockM];
  std::conditional_t<Traits::kGeneral, Sm80RowFacts<Traits::kBlockM>, Sm80NoFacts> facts;
};

/// Where the calling thread stands. Made anew wherever it is needed: what follows from an old one the compiler would
/// compute once and for all, and have no registers for.
template <class Traits>
struct Sm80Place {
  int thread, warp, lane;
  int quad;       ///< which of the 4 threads of a row
  int first_row;  ///< of its warp
  int row;        ///< its first; the others are 8 apart

  __device__ __forceinline__ Sm80Place() {
    thread = static_cast<int>(machine::keep(machine::thread_index().x));
    warp = thread / 32;
    lane = thread % 32;
    quad = lane % 4;
    first_row = warp * 16 * Traits::kM;
    row = first_row + lane / 4;
  }
};

template <class Traits>
using Sm80Scores = float[Traits::kM][Traits::kN][4];

/// Small numbers: none of them beyond the last key.
__device__ __forceinline__ Sm80KeyRange limited_keys(const AttentionSm80Params& p, const KeyRange& keys) {
  const std::int64_t first = keys.first < p.keys ? keys.first : p.keys;
  return {static_cast<std::int32_t>(first), static_cast<std::int32_t>(keys.end < first ? first : keys.end)};
}

/// What is known of the block's rows before the first tile.
template <class Traits>
__device__ __forceinline__ void store_row_facts(const AttentionSm80Params& p, const RowBlock& block,
                                                Sm80Storage<Traits>& storage) {
  const int thread = static_cast<int>(machine::thread_index().x);
  for (int row = thread; row < Traits::kBlockM; row += Traits::kThreads) {
    // A row that does not exist reads what the last one reads.
    const HeadAndQuery at = block.at(p, row < block.rows ? row : block.rows - 1);
    const std::int64_t position = at.query + block.shift;
    machine::store_shared(&storage.row_keys[row], limited_keys(p, block.some_attend(p, {position, position})));
    if constexpr (Traits::kGeneral) {
      using T = typename Traits::Element;
      auto& facts = storage.facts;
      const std::int64_t bias = row_offset(p.bias_strides, block, at);
      const void* bias_row = p.bias_is_f32 ? static_cast<const void*>(static_cast<const float*>(p.bias) + bias)
                                           : static_cast<const void*>(static_cast<const T*>(p.bias) + bias);
      const std::uint8_t* mask_row = p.mask + row_offset(p.mask_strides, block, at);
      machine::store_shared(&facts.bias[row], p.bias == nullptr ? nullptr : bias_row);
      machine::store_shared(&facts.mask[row], p.mask == nullptr ? nullptr : mask_row);
      machine::store_shared(&facts.slope[row], p.alibi_slopes == nullptr
                                                   ? 0.0F
                                                   : machine::load_global(p.alibi_slopes + at.head * p.alibi_stride));
      machine::store_shared(&facts.query[row], static_cast<std::int32_t>(at.query));
      if (row == 0) machine::store_shared(&facts.shift, block.shift);
    }
  }
}

/// Fragments of Q for one step of 16 columns.
template <class Traits>
__device__ __forceinline__ void load_q(std::uint32_t q_at, int step, std::uint32_t (&q)[Traits::kM][4]) {
  using Layout = tile::Swizzle<Traits::kHeadDim>;
#pragma unroll
  for (int m = 0; m < Traits::kM; ++m) {
    machine::ldmatrix_x4(Layout::advance(q_at, 2 * step) + static_cast<std::uint32_t>(16 * m * Layout::kPitch), q[m]);
  }
}

/// The addresses that differ by more than a constant, for ldmatrix along the chunks of a row: chunk 2 i is at [i].
template <int kColumns, bool kKept>
struct Sm80Addresses {
  using Layout = tile::Swizzle<kColumns>;
  static constexpr std::size_t kCount = kKept ? Layout::kGroup / 2 : 1;
  std::uint32_t at[kCount];

  __device__ __forceinline__ explicit Sm80Addresses(std::uint32_t first) {
#pragma unroll
    for (int i = 0; i < static_cast<int>(kCount); ++i) at[i] = machine::keep(Layout::advance(first, 2 * i));
  }
  /// Of chunk `chunk`, an even constant.
  __device__ __forceinline__ std::uint32_t chunk(int chunk) const {
    if constexpr (!kKept) return Layout::advance(at[0], chunk);
    return at[chunk % Layout::kGroup / 2] +
           static_cast<std::uint32_t>(chunk / Layout::kGroup * Layout::kGroup * tile::kChunkBytes);
  }
};

/// Where the calling thread's rows for ldmatrix begin in a tile at `tile`: of A (Q), of B from K, of B from V.
template <int kColumns>
__device__ __forceinline__ std::uint32_t fragment_a(std::uint32_t tile, int row, int lane) {
  return tile + tile::Swizzle<kColumns>::at(row + lane % 16, lane / 16);
}
template <int kColumns>
__device__ __forceinline__ std::uint32_t fragment_b(std::uint32_t tile, int lane) {
  return tile + tile::Swizzle<kColumns>::at(lane % 8 + lane / 16 * 8, lane / 8 % 2);
}
template <int kColumns>
__device__ __forceinline__ std::uint32_t fragment_b_trans(std::uint32_t tile, int lane) {
  return tile + tile::Swizzle<kColumns>::at(lane % 16, lane / 16);
}

/// Every score 0: to see which pairs are attended.
template <class Traits>
__device__ __forceinline__ void clear_scores(Sm80Scores<Traits>& s) {
#pragma unroll
  for (int m = 0; m < Traits::kM; ++m) {
#pragma unroll
    for (int n = 0; n < Traits::kN; ++n) s[m][n][0] = s[m][n][1] = s[m][n][2] = s[m][n][3] = 0;
  }
}

/// S = Q K^T of the warp. Q comes from registers where they hold it all, else fragment by fragment from `q_at`.
template <class Traits, std::size_t kSteps>
__device__ __forceinline__ void multiply_qk(std::uint32_t q_at, const std::uint32_t (&q)[kSteps][Traits::kM][4],
                                            const Sm80Addresses<Traits::kHeadDim, Traits::kKeepAddresses>& k_at,
                                            Sm80Scores<Traits>& s) {
  using T = typename Traits::Element;
  using Layout = tile::Swizzle<Traits::kHeadDim>;
  clear_scores<Traits>(s);
#pragma unroll
  for (int step = 0; step < Traits::kKSteps; ++step) {
    std::uint32_t loaded[Traits::kM][4];
    if constexpr (!Traits::kQInRegisters) load_q<Traits>(q_at, step, loaded);
    const auto& a = Traits::kQInRegisters ? q[Traits::kQInRegisters ? step : 0] : loaded;
#pragma unroll
    for (int n = 0; n < Traits::kN; n += 2) {
      std::uint32_t b[4];
      machine::ldmatrix_x4(k_at.chunk(2 * step) + static_cast<std::uint32_t>(8 * n * Layout::kPitch), b);
#pragma unroll
      for (int m = 0; m < Traits::kM; ++m) {
        machine::mma_m16n8k16<T>(s[m][n], a[m], b[0], b[1]);
        machine::mma_m16n8k16<T>(s[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

/// Pairs that positions rule out become -inf, and the others 0 if that is wanted. No branch: it would keep two sets of
/// scores in registers.
template <class Traits>
__device__ __forceinline__ void mask_positions(const Sm80Storage<Traits>& storage, const Sm80Place<Traits>& place,
                                               int tile, bool zeros, Sm80Scores<Traits>& s) {
#pragma unroll
  for (int m = 0; m < Traits::kM; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      // Rows that do not exist have any range: nobody reads what comes of them.
      const Sm80KeyRange keys = machine::load_shared(&storage.row_keys[place.row + 16 * m + 8 * h]);
      const int first = keys.first - tile * Traits::kBlockN;
      const int end = keys.end - tile * Traits::kBlockN;
#pragma unroll
      for (int n = 0; n < Traits::kN; ++n) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const int key = key_of<Traits::kGeneral>(place.quad, n, c);
          float& x = s[m][n][2 * h + c];
          x = key < first || key >= end ? tile::minus_infinity() : zeros ? 0.0F : x;
        }
      }
    }
  }
}

/// bias[i, key ..] of the thread's 16 keys of a row; beyond the last key whatever, positions rule it out.
template <class T>
__device__ __forceinline__ void load_bias(const AttentionSm80Params& p, const void* row, std::int64_t key,
                                          float (&bias)[16]) {
  const bool whole = p.bias_vectors && key + 16 <= p.keys;
  if (p.bias_is_f32) {
    const auto* from = static_cast<const float*>(row) + key * p.bias_strides[3];
    if (whole) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const auto four = machine::load_global(reinterpret_cast<const tile::Float4*>(from) + i);
        bias[4 * i] = four.x, bias[4 * i + 1] = four.y, bias[4 * i + 2] = four.z, bias[4 * i + 3] = four.w;
      }
      return;
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      bias[i] = key + i < p.keys ? machine::load_global(from + i * p.bias_strides[3]) : 0.0F;
    }
    return;
  }
  const auto* from = static_cast<const T*>(row) + key * p.bias_strides[3];
  if (whole) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const auto words = machine::load_global(reinterpret_cast<const tile::Word4*>(from) + i);
#pragma unroll
      for (int e = 0; e < 8; ++e) bias[8 * i + e] = tile::element_of<T>(words, e);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    bias[i] = key + i < p.keys ? machine::to_float(machine::load_global(from + i * p.bias_strides[3])) : 0.0F;
  }
}

/// mask[i, key ..] of the thread's 16 keys of a row, a byte each.
__device__ __forceinline__ tile::Word4 load_mask(const AttentionSm80Params& p, const std::uint8_t* row,
                                                 std::int64_t key) {
  const std::uint8_t* from = row + key * p.mask_strides[3];
  if (p.mask_vectors && key + 16 <= p.keys) return machine::load_global(reinterpret_cast<const tile::Word4*>(from));
  std::uint32_t words[4] = {};
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    if (key + i >= p.keys) continue;
    words[i / 4] |= std::uint32_t{machine::load_global(from + i * p.mask_strides[3])} << (i % 4 * 8);
  }
  return {words[0], words[1], words[2], words[3]};
}

/// Products -> scores of the general kernel:
///   s = softcap(scale * (q . k)) + bias - slope * |p - j|, -inf where mask or bias takes the pair out.
/// `ones`: 0 where the pair is attended, whatever its score is.
template <class Traits>
__device__ __forceinline__ void finish_scores(const AttentionSm80Params& p, const Sm80Storage<Traits>& storage,
                                              const Sm80Place<Traits>& place, int tile, bool ones,
                                              Sm80Scores<Traits>& s) {
  const std::int64_t key = tile * Traits::kBlockN + 16 * place.quad;
#pragma unroll
  for (int m = 0; m < Traits::kM; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = place.row + 16 * m + 8 * h;
      float bias[16];
#pragma unroll
      for (int i = 0; i < 16; ++i) bias[i] = 0;
      if (p.bias != nullptr) {
        load_bias<typename Traits::Element>(p, machine::load_shared(&storage.facts.bias[row]), key, bias);
      }
      if (p.inverse_softcap > 0) {
#pragma unroll
        for (int i = 0; i < 16; ++i) {
          float& x = s[m][i / 2][2 * h + i % 2];
          x = machine::fma(tile::tanh_by_exp(p.scale * x * p.inverse_softcap), p.softcap, bias[i]);
        }
      } else {
#pragma unroll
        for (int i = 0; i < 16; ++i) {
          float& x = s[m][i / 2][2 * h + i % 2];
          x = machine::fma(x, p.scale, bias[i]);
        }
      }
      if (p.alibi_slopes != nullptr) {
        const float slope = machine::load_shared(&storage.facts.slope[row]);
        const std::int64_t ahead =
            machine::load_shared(&storage.facts.shift) + machine::load_shared(&storage.facts.query[row]) - key;
        const auto distance = static_cast<float>(ahead);
#pragma unroll
        for (int i = 0; i < 16; ++i) {
          float& x = s[m][i / 2][2 * h + i % 2];
          const float away = distance - static_cast<float>(i);
          x = machine::fma(away < 0 ? away : -away, slope, x);
        }
      }
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        float& x = s[m][i / 2][2 * h + i % 2];
        x = ones ? 0.0F : x;
      }
      if (p.mask != nullptr) {
        const tile::Word4 mask = load_mask(p, machine::load_shared(&storage.facts.mask[row]), key);
        const std::uint32_t words[4] = {mask.x, mask.y, mask.z, mask.w};
#pragma unroll
        for (int i = 0; i < 16; ++i) {
          const bool attended = (words[i / 4] & 0xFFU << (i % 4 * 8)) != 0 && bias[i] != tile::minus_infinity();
          if (!attended) s[m][i / 2][2 * h + i % 2] = tile::minus_infinity();
        }
      } else if (p.bias != nullptr) {
#pragma unroll
        for (int i = 0; i < 16; ++i) {
          if (bias[i] == tile::minus_infinity()) s[m][i / 2][2 * h + i % 2] = tile::minus_infinity();
        }
      }
    }
  }
}

}  // namespace sorot::inline v0::cuda
