#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/attention/attention_rows.cuh"
#include "cuda/attention/attention_simt.h"
#include "cuda/machine/isa.cuh"
#include "cuda/tile/load.cuh"
#include "cuda/tile/online_softmax.cuh"

/// Scores of one tile, for the kernels of attention_simt: which rows a block has, which pairs are attended, and
///   s = softcap(scale * (q . k)) + bias - slope * |p - j|.
///
/// Within a warp, lane = 8 * row group + column group. A thread has kRows adjacent rows (of its row group) and the keys
/// column group + 8 n: then 8 lanes read 8 neighbouring keys, and 4 row groups read 4 different q at one address each.
namespace sorot::inline v0::cuda {

using machine::Float2;
using machine::Float4;

/// Sizes of one instantiation, all known to the compiler.
template <class T, int kHeadDimension, bool kFew>
struct SimtTraits {
  using Element = T;
  static constexpr bool kFewRows = kFew;
  static constexpr int kHeadDim = kHeadDimension;
  static constexpr SimtTile kTile = simt_tile(kHeadDim, kFew);
  static constexpr int kBlockM = kTile.queries;
  static constexpr int kBlockN = kTile.keys;
  static constexpr int kRowGroups = kFew ? 4 : 16;
  static constexpr int kRows = kBlockM / kRowGroups;              ///< of a thread
  static constexpr int kWarpKeys = kFew ? kBlockN / 4 : kBlockN;  ///< of the tile
  static constexpr int kKeys = kWarpKeys / 8;                     ///< of a thread
  static constexpr int kChunks = kHeadDim / 32;                   ///< four columns of v and out each, of a thread
  static constexpr int kPitch = tile::kPitch<kHeadDim>;
  static constexpr int kScorePitch = kBlockM + 4;
  static constexpr std::size_t kSharedBytes = simt_shared_bytes(kTile);

  static_assert(kBlockM % kRowGroups == 0 && (kRows == 2 || kRows == 4), "P is read as Float2 or Float4");
  static_assert(kWarpKeys % 8 == 0 && kRows * kKeys <= 32, "attended pairs of a thread are bits of one word");
  static_assert(kHeadDim % 32 == 0);
};

template <class Traits>
struct alignas(16) SimtStorage {
  float q[Traits::kBlockM * Traits::kPitch];
  float kv[Traits::kBlockN * Traits::kPitch];      ///< K, then V, of one tile
  float p[Traits::kBlockN * Traits::kScorePitch];  ///< exp(s - m), transposed: key by key
};

/// Where the calling thread stands.
template <class Traits>
struct ThreadPlace {
  int thread, warp, lane;
  int row;           ///< its first row of the block
  int column_group;  ///< 0..7
  int key;           ///< its first key of a tile

  __device__ __forceinline__ ThreadPlace() {
    thread = static_cast<int>(machine::thread_index().x);
    warp = thread / 32;
    lane = thread % 32;
    column_group = lane % 8;
    row = (Traits::kFewRows ? 0 : warp * 4 * Traits::kRows) + lane / 8 * Traits::kRows;
    key = (Traits::kFewRows ? warp * Traits::kWarpKeys : 0) + column_group;
  }
};

/// Row block `index` of row_blocks * kv heads * B. Later rows come first: if causal they have the most keys.
__device__ __forceinline__ RowBlock row_block_at(const AttentionSimtParams& p, std::int64_t index, int block_rows) {
  const std::int64_t kv = index / p.row_blocks;
  const std::int64_t batch = kv / p.kv_heads;
  const std::int64_t first_row = (p.row_blocks - 1 - (index - kv * p.row_blocks)) * block_rows;
  const std::int64_t head = first_row / p.queries;
  const std::int64_t left = p.rows - first_row;
  return {p,
          batch,
          kv - batch * p.kv_heads,
          head,
          first_row - head * p.queries,
          left < block_rows ? static_cast<int>(left) : block_rows};
}

/// Every row attends every key of the tile, as far as positions go.
__device__ __forceinline__ bool all_attend(const AttentionSimtParams& p, const RowBlock& block, std::int64_t tile_key,
                                           int keys) {
  const KeyRange range = block.all_attend(p, block.positions);
  return tile_key >= range.first && tile_key + keys <= range.end;
}

/// Q of the block, rows beyond the last are zeros.
template <class Traits>
__device__ __forceinline__ void load_queries(const AttentionSimtParams& p, const RowBlock& block, float* tile) {
  using T = typename Traits::Element;
  const auto row_at = [&](int row) -> const T* {
    if (row >= block.rows) return nullptr;
    return static_cast<const T*>(p.q) + row_offset(p.q_strides, block, block.at(p, row));
  };
  tile::load_tile<T, Traits::kBlockM, Traits::kHeadDim, kSimtThreads>(tile, p.head_dim, p.q_strides[3], p.q_path,
                                                                      row_at);
}

/// K or V from key `tile_key` on; keys that no row of the block attends are zeros and are not read.
template <class Traits>
__device__ __forceinline__ void load_keys(const void* data, const std::int64_t (&strides)[4], int columns,
                                          tile::LoadPath path, const RowBlock& block, std::int64_t tile_key,
                                          float* tile) {
  using T = typename Traits::Element;
  const T* first = static_cast<const T*>(data) + block.batch * strides[0] + block.kv_head * strides[1];
  const auto row_at = [&](int row) -> const T* {
    const std::int64_t key = tile_key + row;
    return key < block.keys.first || key >= block.keys.end ? nullptr : first + key * strides[2];
  };
  tile::load_tile<T, Traits::kBlockN, Traits::kHeadDim, kSimtThreads>(tile, columns, strides[3], path, row_at);
}

/// Bit t * kKeys + n: the thread's row t attends its key n, by positions and mask.
template <class Traits>
__device__ __forceinline__ unsigned attended_pairs(const AttentionSimtParams& p, const RowBlock& block,
                                                   const ThreadPlace<Traits>& place, std::int64_t tile_key) {
  constexpr unsigned kAll = 0xFFFF'FFFFU >> (32 - Traits::kRows * Traits::kKeys);
  if (p.mask == nullptr && all_attend(p, block, tile_key, Traits::kBlockN)) return kAll;

  const auto within_tile = [&](std::int64_t key) {
    const std::int64_t index = key - tile_key;
    return index < 0 ? 0 : index < Traits::kBlockN ? static_cast<int>(index) : Traits::kBlockN;
  };
  const int end = within_tile(block.length);
  unsigned bits = 0;
#pragma unroll 1
  for (int t = 0; t < Traits::kRows; ++t) {
    if (place.row + t >= block.rows) continue;
    const HeadAndQuery at = block.at(p, place.row + t);
    const std::int64_t position = at.query + block.shift;
    const int first = p.window_left < 0 ? 0 : within_tile(position - p.window_left);
    const int last = p.window_right < 0 ? end : within_tile(position + p.window_right + 1);
    const std::uint8_t* mask =
        p.mask == nullptr ? nullptr : p.mask + row_offset(p.mask_strides, block, at) + tile_key * p.mask_strides[3];
#pragma unroll
    for (int n = 0; n < Traits::kKeys; ++n) {
      const int key = place.key + 8 * n;
      bool attended = key >= first && key < last && key < end;
      if (attended && mask != nullptr) attended = machine::load_global(mask + key * p.mask_strides[3]) != 0;
      bits |= static_cast<unsigned>(attended) << (t * Traits::kKeys + n);
    }
  }
  return bits;
}

/// q . k of the thread's pairs. Per 4 columns: kRows + kKeys loads of 16 bytes for 4 * kRows * kKeys multiply-adds.
template <class Traits>
__device__ __forceinline__ void multiply_qk(const SimtStorage<Traits>& storage, const ThreadPlace<Traits>& place,
                                            int head_dim, float (&s)[Traits::kRows][Traits::kKeys]) {
#pragma unroll
  for (int t = 0; t < Traits::kRows; ++t) {
#pragma unroll
    for (int n = 0; n < Traits::kKeys; ++n) s[t][n] = 0;
  }
  const float* q_row = storage.q + place.row * Traits::kPitch;
  const float* k_row = storage.kv + place.key * Traits::kPitch;
#pragma unroll 1
  for (int d = 0; d < head_dim; d += 4) {  // columns from D to the next multiple of 4 are zeros
    Float4 q[Traits::kRows], k[Traits::kKeys];
#pragma unroll
    for (int t = 0; t < Traits::kRows; ++t) {
      q[t] = machine::load_shared(reinterpret_cast<const Float4*>(q_row + t * Traits::kPitch + d));
    }
#pragma unroll
    for (int n = 0; n < Traits::kKeys; ++n) {
      k[n] = machine::load_shared(reinterpret_cast<const Float4*>(k_row + 8 * n * Traits::kPitch + d));
    }
#pragma unroll
    for (int t = 0; t < Traits::kRows; ++t) {
#pragma unroll
      for (int n = 0; n < Traits::kKeys; ++n) {
        s[t][n] = machine::fma(q[t].x, k[n].x, s[t][n]);
        s[t][n] = machine::fma(q[t].y, k[n].y, s[t][n]);
        s[t][n] = machine::fma(q[t].z, k[n].z, s[t][n]);
        s[t][n] = machine::fma(q[t].w, k[n].w, s[t][n]);
      }
    }
  }
}

/// The number bias[i,j].
template <class T>
__device__ __forceinline__ float load_bias(const AttentionSimtParams& p, std::int64_t offset) {
  if (p.bias_is_f32) return machine::load_global(static_cast<const float*>(p.bias) + offset);
  return machine::to_float(machine::load_global(static_cast<const T*>(p.bias) + offset));
}

/// kRows floats, one a row of the thread, at a key of P.
template <class Traits>
__device__ __forceinline__ void load_column(const float* from, float (&rows)[Traits::kRows]) {
  if constexpr (Traits::kRows == 4) {
    const Float4 four = machine::load_shared(reinterpret_cast<const Float4*>(from));
    rows[0] = four.x, rows[1] = four.y, rows[2] = four.z, rows[3] = four.w;
  } else {
    const Float2 two = machine::load_shared(reinterpret_cast<const Float2*>(from));
    rows[0] = two.x, rows[1] = two.y;
  }
}
template <class Traits>
__device__ __forceinline__ void store_column(float* to, const float (&rows)[Traits::kRows]) {
  if constexpr (Traits::kRows == 4) {
    machine::store_shared(reinterpret_cast<Float4*>(to), Float4{rows[0], rows[1], rows[2], rows[3]});
  } else {
    machine::store_shared(reinterpret_cast<Float2*>(to), Float2{rows[0], rows[1]});
  }
}

/// The thread's pairs to or from its own places in P.
template <class Traits>
__device__ __forceinline__ void store_pairs(SimtStorage<Traits>& storage, const ThreadPlace<Traits>& place,
                                            const float (&s)[Traits::kRows][Traits::kKeys]) {
#pragma unroll
  for (int n = 0; n < Traits::kKeys; ++n) {
    float rows[Traits::kRows];
#pragma unroll
    for (int t = 0; t < Traits::kRows; ++t) rows[t] = s[t][n];
    store_column<Traits>(storage.p + (place.key + 8 * n) * Traits::kScorePitch + place.row, rows);
  }
}
template <class Traits>
__device__ __forceinline__ void load_pairs(const SimtStorage<Traits>& storage, const ThreadPlace<Traits>& place,
                                           float (&s)[Traits::kRows][Traits::kKeys]) {
#pragma unroll
  for (int n = 0; n < Traits::kKeys; ++n) {
    float rows[Traits::kRows];
    load_column<Traits>(storage.p + (place.key + 8 * n) * Traits::kScorePitch + place.row, rows);
#pragma unroll
    for (int t = 0; t < Traits::kRows; ++t) s[t][n] = rows[t];
  }
}

/// One scaled product -> score. A bias of -inf takes the pair out of `attended`.
template <class T>
__device__ __forceinline__ float finish_score(const AttentionSimtParams& p, const RowBlock& block,
                                              const HeadAndQuery& at, std::int64_t key, bool& attended, float s) {
  if (p.softcap > 0) s = p.softcap * machine::tanh(s / p.softcap);
  if (p.bias != nullptr && attended) {
    const float bias = load_bias<T>(p, row_offset(p.bias_strides, block, at) + key * p.bias_strides[3]);
    attended = bias != tile::minus_infinity();
    s = s + bias;
  }
  if (p.alibi_slopes != nullptr) {
    const float slope = machine::load_global(p.alibi_slopes + at.head * p.alibi_stride);
    const std::int64_t ahead = at.query + block.shift - key;
    s = s - slope * static_cast<float>(ahead < 0 ? -ahead : ahead);
  }
  return s;
}

/// q . k -> scores, and `bits` without the pairs whose bias is -inf. Softcap, bias and ALiBi go pair by pair through
/// the thread's own places in P: unrolled in registers, 32 copies of tanh would take minutes to compile.
template <class Traits>
__device__ __forceinline__ void finish_scores(const AttentionSimtParams& p, const RowBlock& block,
                                              const ThreadPlace<Traits>& place, std::int64_t tile_key,
                                              SimtStorage<Traits>& storage, unsigned& bits,
                                              float (&s)[Traits::kRows][Traits::kKeys]) {
#pragma unroll
  for (int t = 0; t < Traits::kRows; ++t) {
#pragma unroll
    for (int n = 0; n < Traits::kKeys; ++n) s[t][n] = p.scale * s[t][n];
  }
  if (p.softcap == 0 && p.bias == nullptr && p.alibi_slopes == nullptr) return;

  store_pairs(storage, place, s);
#pragma unroll 1
  for (int t = 0; t < Traits::kRows; ++t) {
    if (place.row + t >= block.rows) continue;
    const HeadAndQuery at = block.at(p, place.row + t);
#pragma unroll 1
    for (int n = 0; n < Traits::kKeys; ++n) {
      const unsigned bit = 1U << (t * Traits::kKeys + n);
      const int key = place.key + 8 * n;
      float* pair = storage.p + key * Traits::kScorePitch + place.row + t;
      bool attended = (bits & bit) != 0;
      const float score =
          finish_score<typename Traits::Element>(p, block, at, tile_key + key, attended, machine::load_shared(pair));
      machine::store_shared(pair, score);
      if (!attended) bits &= ~bit;
    }
  }
  load_pairs(storage, place, s);
}

}  // namespace sorot::inline v0::cuda
