#pragma once

#include <cstdint>

#include "cuda/attention/attention_simt_scores.cuh"
#include "cuda/machine/isa.cuh"
#include "cuda/tile/convert.cuh"
#include "cuda/tile/online_softmax.cuh"

/// attention_simt_weights: the weights of attention, after attention_simt (and its merge) left m and Z of every row.
///
///   q, k, (m, Z) [rows]  ->  weights [B, H, Sq, Skv] = exp(s - m) / Z where attended, 0 elsewhere
///
/// A block has one tile, kBlockM rows x kBlockN keys: it scores the pairs as attention_simt does and writes all of
/// them, also where nothing is attended. Never from lse = m + ln Z: with a bias of -1e9 it has lost ln Z.
namespace sorot::inline v0::cuda {

/// One row of the thread: its keys, 8 apart. Neighbouring lanes have neighbouring keys: of f32, 8 lanes fill a sector.
/// 2-byte weights are exchanged first, so that each lane writes two neighbours and 8 lanes fill a sector again.
template <class Traits>
__device__ __forceinline__ void write_weights(const AttentionSimtParams& p, bool row_exists, std::int64_t row_begin,
                                              std::int64_t tile_key, const ThreadPlace<Traits>& place,
                                              const float (&w)[Traits::kKeys]) {
  using T = typename Traits::Element;
  const std::int64_t stride = p.weights_strides[3];
  const auto exists = [&](int key) { return row_exists && tile_key + key < p.keys; };
  if constexpr (sizeof(T) == 2) {
    if (p.weight_pairs) {  // lane c of 8: keys 16 m + 2 c and its neighbour, which lanes 2 c % 8 and 2 c % 8 + 1 have
#pragma unroll
      for (int n = 0; n < Traits::kKeys; n += 2) {
        const unsigned from = static_cast<unsigned>(place.lane / 8 * 8 + place.column_group * 2 % 8);
        const float low_first = machine::shuffle(w[n], from);
        const float low_second = machine::shuffle(w[n], from + 1);
        const float high_first = machine::shuffle(w[n + 1], from);
        const float high_second = machine::shuffle(w[n + 1], from + 1);
        const bool low = place.column_group < 4;
        const std::uint32_t pair =
            machine::from_floats<T>(low ? low_first : high_first, low ? low_second : high_second);
        const int key = 8 * n + 2 * place.column_group;
        T* to = static_cast<T*>(p.weights) + row_begin + tile_key + key;
        if (exists(key + 1)) {
          machine::store_global(reinterpret_cast<std::uint32_t*>(to), pair);
        } else if (exists(key)) {
          machine::store_global(to, machine::bits_as<T>(static_cast<std::uint16_t>(pair)));
        }
      }
      return;
    }
  }
#pragma unroll
  for (int n = 0; n < Traits::kKeys; ++n) {
    const int key = place.key + 8 * n;
    if (!exists(key)) continue;
    const std::int64_t offset = row_begin + (tile_key + key) * stride;
    if (p.weights_are_f32) {
      machine::store_global(static_cast<float*>(p.weights) + offset, w[n]);
    } else {
      machine::store_global(static_cast<T*>(p.weights) + offset, machine::from_float<T>(w[n]));
    }
  }
}

template <class T, int kHeadDim>
__global__ void __launch_bounds__(kSimtThreads, 2)
    attention_simt_weights(const __grid_constant__ AttentionSimtParams p) {
  using Traits = SimtTraits<T, kHeadDim, false>;
  static_assert(Traits::kKeys % 2 == 0);
  auto& storage = machine::shared<SimtStorage<Traits>>();
  const ThreadPlace<Traits> place;
  const std::int64_t index = machine::block_index().x;
  const std::int64_t row_block = index / p.key_tiles;
  const std::int64_t tile_key = (index - row_block * p.key_tiles) * Traits::kBlockN;
  const RowBlock block = row_block_at(p, row_block, Traits::kBlockM);

  float s[Traits::kRows][Traits::kKeys] = {};
  unsigned bits = attended_pairs<Traits>(p, block, place, tile_key);
  if (machine::sync_block_or(bits != 0)) {
    load_queries<Traits>(p, block, storage.q);
    load_keys<Traits>(p.k, p.k_strides, p.head_dim, p.k_path, block, tile_key, storage.kv);
    machine::sync_block();
    multiply_qk<Traits>(storage, place, p.head_dim, s);
    finish_scores<Traits>(p, block, place, tile_key, storage, bits, s);
  }

  Float2 sums{};  // of row t in lane t of its 8 lanes: neighbouring lanes read neighbouring rows
  if (place.column_group < Traits::kRows && place.row + place.column_group < block.rows) {
    const std::int64_t number = block.number(p, place.row + place.column_group);
    sums = machine::load_global(reinterpret_cast<const Float2*>(p.row_sums) + number);
  }
#pragma unroll
  for (int t = 0; t < Traits::kRows; ++t) {
    const int row = place.row + t;
    const bool exists = row < block.rows;
    const std::int64_t row_begin = exists ? row_offset(p.weights_strides, block, block.at(p, row)) : 0;
    const auto holder = static_cast<unsigned>(place.lane / 8 * 8 + t);
    const Float2 sum{machine::shuffle(sums.x, holder), machine::shuffle(sums.y, holder)};
    const float safe = tile::safe_maximum(sum.x);
    const float scale = sum.y == 0.0F ? 0.0F : 1.0F / sum.y;  // Z is 0 in an empty row only
#pragma unroll
    for (int n = 0; n < Traits::kKeys; ++n) {
      const bool attended = (bits >> (t * Traits::kKeys + n) & 1U) != 0;
      s[t][n] = attended ? tile::exp_difference(s[t][n], safe) * scale : 0.0F;
    }
    write_weights<Traits>(p, exists, row_begin, tile_key, place, s[t]);
  }
}

}  // namespace sorot::inline v0::cuda
