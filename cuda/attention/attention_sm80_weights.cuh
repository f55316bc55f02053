#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/attention/attention_rows.cuh"
#include "cuda/attention/attention_sm80.h"
#include "cuda/attention/attention_sm80_copies.cuh"
#include "cuda/attention/attention_sm80_scores.cuh"
#include "cuda/machine/isa.cuh"
#include "cuda/tile/convert.cuh"
#include "cuda/tile/online_softmax.cuh"

/// attention_sm80_weights: the weights of attention, after attention_sm80 left reference and Z of every row.
///
///   q, k, (reference, Z) [B, H, Sq]  ->  weights [B, H, Sq, Skv] = exp(s - reference) / Z where attended, 0 elsewhere
///
/// A block has one tile of scores and writes all of it, also where nothing is attended. It repeats what either kernel
/// did to a score: the same products, the same steps after them, the same reference.
namespace sorot::inline v0::cuda {

/// 16-byte vectors of a thread and its neighbour, to where they belong: together the two store 32 bytes at a time, a
/// whole sector. `even` and `odd` are where the two threads' vectors begin.
template <std::size_t kVectors>
__device__ __forceinline__ void store_by_two(std::byte* even, std::byte* odd, bool is_odd, bool exists,
                                             const machine::Word4 (&vectors)[kVectors]) {
  const std::size_t lead = is_odd ? 16 : 0;
#pragma unroll
  for (std::size_t i = 0; i < kVectors; i += 2) {
    const machine::Word4& kept = is_odd ? vectors[i + 1] : vectors[i];
    const machine::Word4& sent = is_odd ? vectors[i] : vectors[i + 1];
    const machine::Word4 got{machine::shuffle_xor(sent.x, 1), machine::shuffle_xor(sent.y, 1),
                             machine::shuffle_xor(sent.z, 1), machine::shuffle_xor(sent.w, 1)};
    if (!exists) continue;
    machine::store_global(reinterpret_cast<machine::Word4*>(even + 16 * i + lead), is_odd ? got : kept);
    machine::store_global(reinterpret_cast<machine::Word4*>(odd + 16 * i + lead), is_odd ? kept : got);
  }
}

/// 16 weights of a row, keys that are neighbours, of type U. All lanes of the warp come here.
template <class U>
__device__ __forceinline__ void write_weights(const AttentionSm80Params& p, bool exists, std::int64_t row_begin,
                                              std::int64_t key, int quad, const float (&w)[16]) {
  constexpr std::size_t kVectors = sizeof(U);  // 16 numbers in 16-byte vectors
  const std::int64_t even_key = key - quad % 2 * 16;
  const bool whole = p.weights_vectors && even_key + 32 <= p.keys;
  if (machine::any(whole)) {
    machine::Word4 vectors[kVectors];
#pragma unroll
    for (std::size_t i = 0; i < kVectors; ++i) {
      if constexpr (sizeof(U) == 4) {
        vectors[i] = {machine::bits_as<std::uint32_t>(w[4 * i]), machine::bits_as<std::uint32_t>(w[4 * i + 1]),
                      machine::bits_as<std::uint32_t>(w[4 * i + 2]), machine::bits_as<std::uint32_t>(w[4 * i + 3])};
      } else {
        vectors[i] = {
            machine::from_floats<U>(w[8 * i], w[8 * i + 1]), machine::from_floats<U>(w[8 * i + 2], w[8 * i + 3]),
            machine::from_floats<U>(w[8 * i + 4], w[8 * i + 5]), machine::from_floats<U>(w[8 * i + 6], w[8 * i + 7])};
      }
    }
    auto* even = reinterpret_cast<std::byte*>(static_cast<U*>(p.weights) + row_begin + even_key);
    store_by_two(even, even + 16 * sizeof(U), quad % 2 != 0, exists && whole, vectors);
  }
  if (whole || !exists) return;
  U* to = static_cast<U*>(p.weights) + row_begin + key * p.weights_strides[3];
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    if (key + i < p.keys) machine::store_global(to + i * p.weights_strides[3], machine::from_float<U>(w[i]));
  }
}

/// Of each of the thread's rows, a bit for each of its keys: attended, whatever the score is.
template <class Traits>
__device__ __forceinline__ void find_attended(const AttentionSm80Params& p, const Sm80Storage<Traits>& storage,
                                              const Sm80Place<Traits>& place, int tile,
                                              std::uint32_t (&bits)[Traits::kM][2]) {
  Sm80Scores<Traits> s;
  clear_scores<Traits>(s);
  if (p.general) finish_scores<Traits>(p, storage, place, tile, true, s);
  mask_positions<Traits>(storage, place, tile, false, s);
#pragma unroll
  for (int m = 0; m < Traits::kM; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      bits[m][h] = 0;
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        if (s[m][i / 2][2 * h + i % 2] == 0) bits[m][h] |= 1U << i;
      }
    }
  }
}

template <class T, std::size_t kTileIndex>
__global__ void __launch_bounds__(kSm80WeightsTiles[kTileIndex].threads())
    attention_sm80_weights(const __grid_constant__ AttentionSm80Params p) {
  using Traits = Sm80Traits<T, true, true, kTileIndex>;
  auto& storage = machine::shared<Sm80Storage<Traits>>();
  static_assert(sizeof storage == Traits::kSharedBytes);
  const Sm80Place<Traits> place;
  const auto key_tiles = static_cast<std::uint32_t>(p.key_tiles);
  const std::uint32_t index = machine::block_index().x / key_tiles;
  const int tile = static_cast<int>(machine::block_index().x - index * key_tiles);
  const RowBlock block = sm80_row_block<Traits>(p, index);

  store_row_facts<Traits>(p, block, storage);
  store_tiles<Traits>(p, block, place, storage);
  clear_columns<Traits::kBlockM, Traits::kHeadDim, Traits::kThreads>(storage.q, p.head_chunks, place.thread);
  clear_columns<Traits::kBlockN, Traits::kHeadDim, Traits::kThreads>(storage.k, p.head_chunks, place.thread);
  machine::sync_block();

  Sm80Scores<Traits> s;
  std::uint32_t bits[Traits::kM][2];
  const Sm80Tiles tiles = machine::load_shared(&storage.tiles);
  const bool attended = tile >= tiles.begin && tile < tiles.end;
  if (attended) {
    copy_queries<Traits>(p, block, storage, place.thread);
    Sm80Copier<Traits, Traits::kHeadDim> k_copier(p.k, block.batch * p.k_strides[0] + block.kv_head * p.k_strides[1],
                                                  p.k_strides[2], std::int64_t{tile} * Traits::kBlockN,
                                                  machine::shared_address(storage.k), place.thread);
    k_copier.copy_edge(p.head_chunks, p.k_steps, machine::load_shared(&storage.keys), tile, place.thread);
    machine::cp_async_commit();
    machine::cp_async_wait<0>();
    machine::sync_block();
    find_attended<Traits>(p, storage, place, tile, bits);
    const std::uint32_t q_at =
        fragment_a<Traits::kHeadDim>(machine::shared_address(storage.q), place.first_row, place.lane);
    const Sm80Addresses<Traits::kHeadDim, false> k_at(
        fragment_b<Traits::kHeadDim>(machine::shared_address(storage.k), place.lane));
    const std::uint32_t none[1][Traits::kM][4] = {};
    multiply_qk<Traits>(q_at, none, k_at, s);
    if (p.general) finish_scores<Traits>(p, storage, place, tile, false, s);
  }

  const std::int64_t key = std::int64_t{tile} * Traits::kBlockN + 16 * place.quad;
  const float scale = p.general ? 1.0F : p.scale;
#pragma unroll
  for (int m = 0; m < Traits::kM; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = place.row + 16 * m + 8 * h;
      const bool exists = row < block.rows;
      float w[16];
#pragma unroll
      for (int i = 0; i < 16; ++i) w[i] = 0;
      if (attended && exists) {
        const machine::Float4 sums = machine::load_global(p.row_sums + block.number(p, row));
        const float share = 1.0F / sums.y;
#pragma unroll
        for (int i = 0; i < 16; ++i) {
          if ((bits[m][h] >> i & 1U) == 0) continue;
          const float x = s[m][i / 2][2 * h + i % 2];
          const float exponent =
              sums.z != 0 ? (x * scale - sums.x) * tile::kLog2E : machine::fma(x, p.log2_scale, -sums.x);
          w[i] = machine::exp2_approx(exponent) * share;
        }
      }
      const std::int64_t row_begin = exists ? row_offset(p.weights_strides, block, block.at(p, row)) : 0;
      if (p.weights_are_f32) {
        write_weights<float>(p, exists, row_begin, key, place.quad, w);
      } else {
        write_weights<T>(p, exists, row_begin, key, place.quad, w);
      }
    }
  }
}

}  // namespace sorot::inline v0::cuda
