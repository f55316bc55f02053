#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/attention/attention_simt.h"
#include "cuda/attention/attention_simt_scores.cuh"
#include "cuda/machine/isa.cuh"
#include "cuda/tile/convert.cuh"
#include "cuda/tile/online_softmax.cuh"

/// attention_simt: attention in plain f32 arithmetic, for every type, layout and feature, from sm_75 on.
///
///   q [B, H, Sq, D], k [B, Hkv, Skv, D], v [B, Hkv, Skv, Dv]  ->  out [B, H, Sq, Dv], lse [B, H, Sq]
///
/// A block has kBlockM rows: the query rows of all heads that share one kv head, packed head after head, so that every
/// K and V element it reads serves all of them. Blocks of one row block share its keys out among `splits`.
///
///   for each tile of keys that some row attends:
///     S = Q K^T in registers;  m, Z, P = online softmax of S;  P^T to shared memory
///     acc += P V
///
/// The surprise: 0 * NaN is NaN, so a V row that only *some* rows of a block attend could spoil the others. The block
/// computes as if it could not; if then a number that should be finite is not, it computes once more, *carefully*:
/// pairs that are not attended (P holds exactly -0.0f for them, which exp never gives) are left out one by one. What
/// still is not finite may have left the range of a sum, if v is near the largest float: a third attempt carries
/// *means* of v instead, and mends those numbers alone. What is not finite then is the truth.
namespace sorot::inline v0::cuda {

inline constexpr std::uint32_t kNotAttended = 0x8000'0000U;  ///< bits of -0.0f

enum class Attempt : int { fast, careful, means };

/// What a thread gathers of its rows, over the tiles so far: m, z = sum exp(s - m), acc = sum exp(s - m) v; z is of the
/// thread's own keys. In the attempt with means z is of all 8 lanes of the row, and acc is half of the mean, acc / z
/// / 2.
template <class Traits>
struct SimtState {
  float m[Traits::kRows];
  float z[Traits::kRows];
  float acc[Traits::kRows][Traits::kChunks][4];  ///< columns column group * 4 + 32 * chunk

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int t = 0; t < Traits::kRows; ++t) {
      m[t] = tile::minus_infinity();
      z[t] = 0;
#pragma unroll
      for (int c = 0; c < Traits::kChunks; ++c) {
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[t][c][e] = 0;
      }
    }
  }
};

/// Scores -> P^T in shared memory; m, z and acc move to the new maximum.
template <class Traits>
__device__ __forceinline__ void softmax_tile(SimtStorage<Traits>& storage, const ThreadPlace<Traits>& place,
                                             unsigned bits, bool means, float (&s)[Traits::kRows][Traits::kKeys],
                                             SimtState<Traits>& state) {
#pragma unroll
  for (int t = 0; t < Traits::kRows; ++t) {
    float m = state.m[t];
#pragma unroll
    for (int n = 0; n < Traits::kKeys; ++n) {
      if ((bits >> (t * Traits::kKeys + n) & 1U) != 0) m = machine::max(m, s[t][n]);
    }
    m = tile::max_of_eight(m);
    const float safe = tile::safe_maximum(m);
    const float correction = tile::exp_difference(state.m[t], safe);
    float sum = 0;
#pragma unroll
    for (int n = 0; n < Traits::kKeys; ++n) {
      const bool attended = (bits >> (t * Traits::kKeys + n) & 1U) != 0;
      s[t][n] = attended ? tile::exp_difference(s[t][n], safe) : machine::bits_as<float>(std::uint32_t{kNotAttended});
      sum += s[t][n];
    }
    float keep = correction;
    state.m[t] = m;
    if (means) {
      const float before = state.z[t] * correction;
      state.z[t] = before + tile::sum_of_eight(sum);
      const float share = state.z[t] == 0.0F ? 1.0F : 1.0F / state.z[t];  // Z is 0 while all scores are -inf
      keep = before * share;
#pragma unroll
      for (int n = 0; n < Traits::kKeys; ++n) s[t][n] *= 0.5F * share;  // -0.0f stays
    } else {
      state.z[t] = machine::fma(state.z[t], correction, sum);
    }
#pragma unroll
    for (int c = 0; c < Traits::kChunks; ++c) {
#pragma unroll
      for (int e = 0; e < 4; ++e) state.acc[t][c][e] *= keep;
    }
  }
  store_pairs(storage, place, s);
}

/// acc += P V for one key. Per key one load of P and kChunks of V for 4 * kRows * kChunks multiply-adds.
template <class Traits, bool kCareful>
__device__ __forceinline__ void multiply_pv_key(const SimtStorage<Traits>& storage, const ThreadPlace<Traits>& place,
                                                int key, SimtState<Traits>& state) {
  float p[Traits::kRows];
  load_column<Traits>(storage.p + key * Traits::kScorePitch + place.row, p);
  const float* v_row = storage.kv + key * Traits::kPitch + place.column_group * 4;
#pragma unroll
  for (int c = 0; c < Traits::kChunks; ++c) {
    const Float4 v = machine::load_shared(reinterpret_cast<const Float4*>(v_row + 32 * c));
#pragma unroll
    for (int t = 0; t < Traits::kRows; ++t) {
      if (kCareful && machine::bits_as<std::uint32_t>(p[t]) == kNotAttended) continue;
      float(&acc)[4] = state.acc[t][c];
      acc[0] = machine::fma(p[t], v.x, acc[0]);
      acc[1] = machine::fma(p[t], v.y, acc[1]);
      acc[2] = machine::fma(p[t], v.z, acc[2]);
      acc[3] = machine::fma(p[t], v.w, acc[3]);
    }
  }
}

/// acc += P V over the warp's first `keys` keys of the tile.
template <class Traits>
__device__ __forceinline__ void multiply_pv(const SimtStorage<Traits>& storage, const ThreadPlace<Traits>& place,
                                            int keys, bool careful, SimtState<Traits>& state) {
  const int first = Traits::kFewRows ? place.warp * Traits::kWarpKeys : 0;
  if (careful) {
    for (int key = first; key < first + keys; ++key) multiply_pv_key<Traits, true>(storage, place, key, state);
    return;
  }
  for (int key = first; key < first + keys; key += 4) {  // keys up to the next multiple of 4 are zeros
#pragma unroll
    for (int k = 0; k < 4; ++k) multiply_pv_key<Traits, false>(storage, place, key + k, state);
  }
}

/// All tiles of the block's split.
template <class Traits>
__device__ __forceinline__ void attend(const AttentionSimtParams& p, const RowBlock& block, int split, Attempt attempt,
                                       const ThreadPlace<Traits>& place, SimtStorage<Traits>& storage,
                                       SimtState<Traits>& state) {
  constexpr int kBlockN = Traits::kBlockN;
  const std::int64_t first_tile = block.keys.first / kBlockN;
  const std::int64_t end_tile =
      block.keys.end > block.keys.first ? (block.keys.end + kBlockN - 1) / kBlockN : first_tile;
  const std::int64_t tiles = (end_tile - first_tile + p.splits - 1) / p.splits;
  const std::int64_t begin = first_tile + tiles * split;
  const std::int64_t end = begin + tiles < end_tile ? begin + tiles : end_tile;
  state.clear();

  for (std::int64_t tile = begin; tile < end; ++tile) {
    const std::int64_t tile_key = tile * kBlockN;
    unsigned bits = attended_pairs<Traits>(p, block, place, tile_key);
    // Also keeps the tile before, and what the block did before, in shared memory until all have read it.
    if (!machine::sync_block_or(bits != 0)) continue;
    const bool busy = machine::any(bits != 0);  // the warp has something to do

#pragma unroll 1
    for (int phase = 0; phase < 2; ++phase) {  // K, then V: one copy of the code that loads them
      const bool values = phase == 1;
      if (values) machine::sync_block();  // all have read K
      load_keys<Traits>(values ? p.v : p.k, values ? p.v_strides : p.k_strides, values ? p.value_dim : p.head_dim,
                        values ? p.v_path : p.k_path, block, tile_key, storage.kv);
      machine::sync_block();
      if (!busy) continue;
      if (!values) {
        float s[Traits::kRows][Traits::kKeys];
        multiply_qk<Traits>(storage, place, p.head_dim, s);
        finish_scores<Traits>(p, block, place, tile_key, storage, bits, s);
        softmax_tile<Traits>(storage, place, bits, attempt == Attempt::means, s, state);
      } else {
        const std::int64_t left = block.keys.end - tile_key - (Traits::kFewRows ? place.warp * Traits::kWarpKeys : 0);
        const int keys = left < Traits::kWarpKeys ? static_cast<int>(left) : Traits::kWarpKeys;
        multiply_pv<Traits>(storage, place, keys, attempt != Attempt::fast, state);
      }
    }
  }
}

/// What is left to write: kRows rows of kChunks times four columns a thread. Wide blocks keep the thread's rows; with
/// few rows a thread ends up with a 16th of one row.
template <class Traits>
struct SimtResult {
  static constexpr int kRows = Traits::kFewRows ? 1 : Traits::kRows;
  static constexpr int kLanes = Traits::kFewRows ? 16 : 8;  ///< of a row
  static constexpr int kChunks = Traits::kHeadDim / (4 * kLanes);
  tile::RowSum sums[std::size_t{kRows}];
  float acc[std::size_t{kRows}][std::size_t{kChunks}][4];

  static __device__ __forceinline__ int row(const ThreadPlace<Traits>& place) {
    return Traits::kFewRows ? place.warp * 2 + place.lane / kLanes : place.row;
  }
  static __device__ __forceinline__ int column(const ThreadPlace<Traits>& place, int chunk) {
    return (place.lane % kLanes + chunk * kLanes) * 4;
  }
};

/// The sums of the 8 lanes of a row, and with few rows those of the 4 warps, each with its own maximum.
template <class Traits>
__device__ __forceinline__ void gather(const ThreadPlace<Traits>& place, bool means, SimtStorage<Traits>& storage,
                                       const SimtState<Traits>& state, SimtResult<Traits>& result) {
  using Result = SimtResult<Traits>;
  if constexpr (!Traits::kFewRows) {
#pragma unroll
    for (int t = 0; t < Traits::kRows; ++t) {
      result.sums[t] = {state.m[t], means ? state.z[t] : tile::sum_of_eight(state.z[t])};
#pragma unroll
      for (int c = 0; c < Traits::kChunks; ++c) {
#pragma unroll
        for (int e = 0; e < 4; ++e) result.acc[t][c][e] = state.acc[t][c][e];
      }
    }
  } else {
    // acc of warp w at kv[w][row][column], m and z at p[w][row]: both are free once the last tile is done.
    constexpr int kBlockM = Traits::kBlockM;
    static_assert(kBlockM == 8 && 4 * kBlockM <= Traits::kBlockN &&
                  4 * kBlockM * 2 <= sizeof storage.p / sizeof(float));
    machine::sync_block();
#pragma unroll
    for (int t = 0; t < Traits::kRows; ++t) {
      const int slot = place.warp * kBlockM + place.row + t;
      const float z = means ? state.z[t] : tile::sum_of_eight(state.z[t]);
      if (place.column_group == 0) {
        machine::store_shared(reinterpret_cast<Float2*>(storage.p + slot * 2), Float2{state.m[t], z});
      }
#pragma unroll
      for (int c = 0; c < Traits::kChunks; ++c) {
        const float(&acc)[4] = state.acc[t][c];
        float* to = storage.kv + slot * Traits::kPitch + place.column_group * 4 + 32 * c;
        machine::store_shared(reinterpret_cast<Float4*>(to), Float4{acc[0], acc[1], acc[2], acc[3]});
      }
    }
    machine::sync_block();

    const int row = Result::row(place);
    Float2 sums[4];
    float m = tile::minus_infinity();
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      sums[w] = machine::load_shared(reinterpret_cast<const Float2*>(storage.p + (w * kBlockM + row) * 2));
      m = machine::max(m, sums[w].x);
    }
    const float safe = tile::safe_maximum(m);
    float z = 0;
#pragma unroll
    for (int w = 0; w < 4; ++w) z = machine::fma(sums[w].y, tile::exp_difference(sums[w].x, safe), z);
#pragma unroll
    for (int c = 0; c < Result::kChunks; ++c) {
#pragma unroll
      for (int e = 0; e < 4; ++e) result.acc[0][c][e] = 0;
    }
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      float factor = tile::exp_difference(sums[w].x, safe);  // sums add up; means are averaged
      if (means) factor = z == 0.0F ? 1.0F : factor * sums[w].y / z;
#pragma unroll
      for (int c = 0; c < Result::kChunks; ++c) {
        const float* from = storage.kv + (w * kBlockM + row) * Traits::kPitch + Result::column(place, c);
        const Float4 part = machine::load_shared(reinterpret_cast<const Float4*>(from));
        float(&acc)[4] = result.acc[0][c];
        acc[0] = machine::fma(part.x, factor, acc[0]);
        acc[1] = machine::fma(part.y, factor, acc[1]);
        acc[2] = machine::fma(part.z, factor, acc[2]);
        acc[3] = machine::fma(part.w, factor, acc[3]);
      }
    }
    result.sums[0] = {m, z};
  }
}

/// The thread has a number that is not finite, in a row whose scores give no reason for it.
template <class Traits>
__device__ __forceinline__ bool looks_wrong(const AttentionSimtParams& p, const RowBlock& block,
                                            const ThreadPlace<Traits>& place, const SimtResult<Traits>& result) {
  using Result = SimtResult<Traits>;
  bool wrong = false;
#pragma unroll
  for (int t = 0; t < Result::kRows; ++t) {
    const bool counts = Result::row(place) + t < block.rows && !tile::is_nan(result.sums[t].z);
#pragma unroll
    for (int c = 0; c < Result::kChunks; ++c) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const bool inside = Result::column(place, c) + e < p.value_dim;
        wrong = wrong || (counts && inside && !tile::is_finite(result.acc[t][c][e]));
      }
    }
  }
  return wrong;
}

/// Four columns of out.
template <class T>
__device__ __forceinline__ void write_out(const AttentionSimtParams& p, std::int64_t row_begin, int column,
                                          const float (&values)[4]) {
  T* to = static_cast<T*>(p.out) + row_begin + column * p.out_strides[3];
  if (p.out_vectors && column + 4 <= p.value_dim) {
    tile::store_four(to, values);
  } else {
    tile::store_each(to, p.out_strides[3], p.value_dim - column, values);
  }
}

/// lse and the sums that the weights kernel reads; both with the sink, z not scaled. One lane a row, of that number.
__device__ __forceinline__ void write_sums(const AttentionSimtParams& p, std::int64_t batch, const HeadAndQuery& at,
                                           std::int64_t number, const tile::RowSum& sum) {
  if (p.lse != nullptr) {
    const std::int64_t offset = batch * p.lse_strides[0] + at.head * p.lse_strides[1] + at.query * p.lse_strides[2];
    machine::store_global(p.lse + offset, sum.empty() ? tile::minus_infinity() : sum.m + machine::log(sum.z));
  }
  if (p.row_sums != nullptr) {
    machine::store_global(reinterpret_cast<Float2*>(p.row_sums) + number, Float2{sum.m, sum.z});
  }
}

/// The numbers of out that are finite already keep what they are.
template <class T>
__device__ __forceinline__ void keep_finite(const T* stored, std::int64_t stride, int count, float (&values)[4]) {
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    if (e >= count) continue;
    const float before = machine::to_float(machine::load_global(stored + e * stride));
    if (tile::is_finite(before)) values[e] = before;
  }
}

/// out of one row, or, of a split, its own mean of v. Gives back m and Z: with the sink, or those of the split.
///
/// A row without a key has weights 0, whatever v holds (but a NaN sink makes it NaN). A split without one keeps its
/// sum instead of the mean: 0, or NaN where a key of score -inf has a v that is not finite; that counts once another
/// split has a key.
template <class Traits>
__device__ __forceinline__ tile::RowSum write_row(const AttentionSimtParams& p, const RowBlock& block, int row,
                                                  int split, Attempt attempt, const ThreadPlace<Traits>& place,
                                                  const tile::RowSum& keys,
                                                  const float (&acc)[SimtResult<Traits>::kChunks][4]) {
  using Result = SimtResult<Traits>;
  const HeadAndQuery at = block.at(p, row);
  const bool partial = p.partial_out != nullptr;
  tile::RowSum sum = keys;
  const bool means = attempt == Attempt::means;
  float scale = means ? 2.0F : keys.z == 0.0F ? 1.0F : 1.0F / keys.z;
  bool zero = false;
  if (!partial) {
    sum = tile::join_sink(keys, load_sink(p, at.head));
    const float weight = tile::exp_difference(keys.m, tile::safe_maximum(sum.m));
    scale = means ? 2.0F * (weight * keys.z / sum.z) : weight / sum.z;
    zero = keys.empty() && !tile::is_nan(sum.z);
  }
  const std::int64_t row_begin = row_offset(p.out_strides, block, at);
  float* partial_begin =
      partial ? p.partial_out + (split * p.all_rows + block.number(p, row)) * p.partial_pitch : nullptr;
#pragma unroll
  for (int c = 0; c < Result::kChunks; ++c) {
    const int column = Result::column(place, c);
    if (column >= p.value_dim) continue;
    float values[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) values[e] = zero ? 0.0F : tile::mean_from(acc[c][e] * scale, acc[c][e]);
    if (partial) {
      if (means) keep_finite(partial_begin + column, 1, 4, values);
      tile::store_four(partial_begin + column, values);
    } else {
      using T = typename Traits::Element;
      const T* stored = static_cast<const T*>(p.out) + row_begin + column * p.out_strides[3];
      if (means) keep_finite(stored, p.out_strides[3], p.value_dim - column, values);
      write_out<typename Traits::Element>(p, row_begin, column, values);
    }
  }
  return sum;
}

/// All rows of the block, and their sums. An attempt with means mends numbers and leaves the sums alone.
template <class Traits>
__device__ __forceinline__ void write_rows(const AttentionSimtParams& p, const RowBlock& block, int split,
                                           Attempt attempt, const ThreadPlace<Traits>& place,
                                           const SimtResult<Traits>& result) {
  using Result = SimtResult<Traits>;
  // Lane t of a row's lanes keeps the sum of row t: so neighbouring lanes write neighbouring rows.
  tile::RowSum sum{};
  const int lane_of_row = place.lane % Result::kLanes;
#pragma unroll
  for (int t = 0; t < Result::kRows; ++t) {
    const int row = Result::row(place) + t;
    if (row >= block.rows) continue;
    const tile::RowSum one = write_row<Traits>(p, block, row, split, attempt, place, result.sums[t], result.acc[t]);
    if (lane_of_row == t) sum = one;
  }
  const int row = Result::row(place) + lane_of_row;
  if (attempt == Attempt::means || lane_of_row >= Result::kRows || row >= block.rows) return;
  const std::int64_t number = block.number(p, row);
  if (p.partial_sums != nullptr) {
    machine::store_global(reinterpret_cast<Float2*>(p.partial_sums) + split * p.all_rows + number,
                          Float2{sum.m, sum.z});
  } else {
    write_sums(p, block.batch, block.at(p, row), number, sum);
  }
}

template <class T, int kHeadDim, bool kFewRows>
__global__ void __launch_bounds__(kSimtThreads, 2) attention_simt(const __grid_constant__ AttentionSimtParams p) {
  using Traits = SimtTraits<T, kHeadDim, kFewRows>;
  static_assert(sizeof(SimtStorage<Traits>) == Traits::kSharedBytes);
  auto& storage = machine::shared<SimtStorage<Traits>>();
  const ThreadPlace<Traits> place;
  const std::int64_t index = machine::block_index().x;
  const std::int64_t row_block = index / p.splits;
  const int split = static_cast<int>(index - row_block * p.splits);
  const RowBlock block = row_block_at(p, row_block, Traits::kBlockM);

  load_queries<Traits>(p, block, storage.q);  // the first barrier of `attend` completes it
  SimtState<Traits> state;
  SimtResult<Traits> result;
  for (Attempt attempt = Attempt::fast;;) {
    attend<Traits>(p, block, split, attempt, place, storage, state);
    gather<Traits>(place, attempt == Attempt::means, storage, state, result);
    const bool again =
        attempt != Attempt::means && machine::sync_block_or(looks_wrong<Traits>(p, block, place, result));
    if (!again || attempt != Attempt::fast) {
      write_rows<Traits>(p, block, split, attempt, place, result);
    }
    if (!again) break;
    attempt = attempt == Attempt::fast ? Attempt::careful : Attempt::means;
  }
}

}  // namespace sorot::inline v0::cuda
