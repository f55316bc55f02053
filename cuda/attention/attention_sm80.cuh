#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cuda/attention/attention_rows.cuh"
#include "cuda/attention/attention_sm80.h"
#include "cuda/attention/attention_sm80_copies.cuh"
#include "cuda/attention/attention_sm80_result.cuh"
#include "cuda/attention/attention_sm80_scores.cuh"
#include "cuda/attention/attention_sm80_softmax.cuh"
#include "cuda/machine/isa.cuh"
#include "cuda/tile/online_softmax.cuh"
#include "cuda/tile/swizzle.cuh"

/// attention_sm80: attention on tensor cores, f16 and bf16, from sm_80 on (after FlashAttention-2, Dao 2023).
///
///   q [B, H, Sq, D], k [B, Hkv, Skv, D], v [B, Hkv, Skv, Dv]  ->  out [B, H, Sq, Dv], lse [B, H, Sq]
///
/// A block has kBlockM query rows of one head, or of all heads of a group if so few; a warp has 16 or 32 of them. K and
/// V tiles arrive by cp.async, each while the other is used.
///
///   for each tile of keys that some row attends:
///     S = Q K^T in accumulators;  m, Z, P = online softmax of S;  P is the A operand as it lies in registers
///     acc += P V
///
/// The surprise: a row's reference, what is subtracted from its scores, is not its maximum but one from before, as long
/// as the maximum has not grown by more than 8 in the exponent of 2. Then nothing is rescaled and nothing is exchanged
/// between threads: per tile and row one comparison, and one vote a warp. P is up to 256 then, and Z at least about 1.
///
/// The plain kernel (positions and scale only) never turns a product into a score: exp2(s * c - reference) is one
/// multiply-add, c = scale * log2 e > 0. A warp in which a reference is large, where that difference would lose digits,
/// goes on with (s * scale - m) * log2 e.
namespace sorot::inline v0::cuda {

/// acc += P V, P = exp2(s * factor - reference) made 16 keys at a time.
template <class Traits>
__device__ __forceinline__ void multiply_pv(const Sm80Scores<Traits>& s, float factor,
                                            const Sm80Addresses<Traits::kValueDim, Traits::kKeepAddresses>& v_at,
                                            Sm80State<Traits>& state) {
  using T = typename Traits::Element;
  using Layout = tile::Swizzle<Traits::kValueDim>;
#pragma unroll
  for (int step = 0; step < Traits::kN / 2; ++step) {
    std::uint32_t a[Traits::kM][4];
#pragma unroll
    for (int m = 0; m < Traits::kM; ++m) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const float(&pair)[4] = s[m][2 * step + j];
          const float x = machine::exp2_approx(machine::fma(pair[2 * h], factor, -state.reference[m][h]));
          const float y = machine::exp2_approx(machine::fma(pair[2 * h + 1], factor, -state.reference[m][h]));
          state.z[m][h] += x;
          state.z[m][h] += y;
          a[m][2 * j + h] = machine::from_floats<T>(x, y);
        }
      }
    }
#pragma unroll
    for (int n = 0; n < Traits::kVN; n += 2) {
      std::uint32_t b[4];
      machine::ldmatrix_x4_trans(v_at.chunk(n) + static_cast<std::uint32_t>(16 * step * Layout::kPitch), b);
#pragma unroll
      for (int m = 0; m < Traits::kM; ++m) {
        machine::mma_m16n8k16<T>(state.acc[m][n], a[m], b[0], b[1]);
        machine::mma_m16n8k16<T>(state.acc[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

/// All tiles of the block.
template <class Traits>
__device__ __forceinline__ void attend(const AttentionSm80Params& p, Sm80Attempt attempt, Sm80Storage<Traits>& storage,
                                       Sm80State<Traits>& state) {
  // Where no score may move the reference, every P is 2^0 or 0.
  state.clear(attempt == Sm80Attempt::taint ? tile::infinity() : tile::minus_infinity());
  const int begin = machine::load_shared(&storage.tiles).begin;
  if (begin >= machine::load_shared(&storage.tiles).end) return;

  const Sm80Place<Traits> place;
  const RowBlock block = sm80_row_block<Traits>(p, machine::keep(machine::block_index().x));
  const std::int64_t first_key = std::int64_t{begin} * Traits::kBlockN;
  Sm80Copier<Traits, Traits::kHeadDim> k_copier(p.k, block.batch * p.k_strides[0] + block.kv_head * p.k_strides[1],
                                                p.k_strides[2], first_key, machine::shared_address(storage.k),
                                                place.thread);
  Sm80Copier<Traits, Traits::kValueDim> v_copier(p.v, block.batch * p.v_strides[0] + block.kv_head * p.v_strides[1],
                                                 p.v_strides[2], first_key, machine::shared_address(storage.v),
                                                 place.thread);
  clear_columns<Traits::kBlockM, Traits::kHeadDim, Traits::kThreads>(storage.q, p.head_chunks, place.thread);
  copy_queries<Traits>(p, block, storage, place.thread);
  k_copier.copy_edge(p.head_chunks, p.k_steps, machine::load_shared(&storage.keys), begin, place.thread);
  machine::cp_async_commit();

  // Addresses that stay; the compiler would compute them again and again to save registers.
  const std::uint32_t q_at =
      machine::keep(fragment_a<Traits::kHeadDim>(machine::shared_address(storage.q), place.first_row, place.lane));
  const Sm80Addresses<Traits::kHeadDim, Traits::kKeepAddresses> k_at(
      fragment_b<Traits::kHeadDim>(machine::shared_address(storage.k), place.lane));
  const Sm80Addresses<Traits::kValueDim, Traits::kKeepAddresses> v_at(
      fragment_b_trans<Traits::kValueDim>(machine::shared_address(storage.v), place.lane));
  std::uint32_t q[Traits::kQInRegisters ? Traits::kKSteps : 1][Traits::kM][4];
  if constexpr (Traits::kQInRegisters) {
    machine::cp_async_wait<0>();
    machine::sync_block();
#pragma unroll
    for (int step = 0; step < Traits::kKSteps; ++step) load_q<Traits>(q_at, step, q[step]);
  }

  // One tile: V is copied while K is used, and the next K while V is. Before each use one wait and one barrier: then
  // that tile has arrived, and the other is used up by all warps. A steady tile needs no look at positions, and neither
  // does the one that is copied meanwhile.
  const auto step = [&](auto steady, int tile) {
    constexpr bool kSteady = decltype(steady)::value;
    machine::cp_async_wait<0>();
    machine::sync_block();
    if constexpr (kSteady) {
      v_copier.copy(p.value_chunks, p.v_steps);
    } else {
      v_copier.copy_edge(p.value_chunks, p.v_steps, machine::load_shared(&storage.keys), tile,
                         Sm80Place<Traits>().thread);
    }
    machine::cp_async_commit();

    Sm80Tiles mine{};
    if constexpr (!kSteady) mine = machine::load_shared(&storage.warp_tiles[Sm80Place<Traits>().warp]);
    const bool busy = kSteady || (tile >= mine.begin && tile < mine.end);
    Sm80Scores<Traits> s;
    float factor = p.log2_scale;
    if (busy) {
      multiply_qk<Traits>(q_at, q, k_at, s);
      const bool ones = !kSteady && attempt == Sm80Attempt::taint;
      if constexpr (Traits::kGeneral) finish_scores<Traits>(p, storage, Sm80Place<Traits>(), tile, ones, s);
      if constexpr (!kSteady) mask_positions<Traits>(storage, Sm80Place<Traits>(), tile, ones && !Traits::kGeneral, s);
      float top[Traits::kM][2];
      const bool grown = find_tops<Traits>(s, state, top);
      if (machine::any(grown || state.large != 0)) {
        if (machine::any(grown)) move_references<Traits>(p, top, state);
        if (state.large != 0) {
          subtract_large<Traits>(p, state, s);
          factor = 1;
        }
      }
    }

    machine::cp_async_wait<0>();
    machine::sync_block();
    if constexpr (kSteady) {
      k_copier.copy(p.head_chunks, p.k_steps);
    } else if (tile + 1 < machine::load_shared(&storage.tiles).end) {
      k_copier.copy_edge(p.head_chunks, p.k_steps, machine::load_shared(&storage.keys), tile + 1,
                         Sm80Place<Traits>().thread);
    }
    machine::cp_async_commit();
    if (!kSteady && attempt != Sm80Attempt::fast) {
      repair_values<Traits>(attempt, storage.v, Sm80Place<Traits>().thread);
      machine::sync_block();
    }
    if (busy) multiply_pv<Traits>(s, factor, v_at, state);
  };

  for (int tile = begin;; ++tile) {
    const Sm80Tiles tiles = machine::load_shared(&storage.tiles);
    if (attempt == Sm80Attempt::fast && tile >= tiles.clean_begin) {
      for (; tile + 1 < tiles.clean_end; ++tile) step(std::true_type(), tile);
    }
    if (tile >= tiles.end) break;
    step(std::false_type(), tile);
  }
}

template <class T, std::size_t kTileIndex, bool kGeneral>
__global__ void __launch_bounds__(kSm80Tiles[kTileIndex].threads())
    attention_sm80(const __grid_constant__ AttentionSm80Params p) {
  using Traits = Sm80Traits<T, kGeneral, false, kTileIndex>;
  static_assert(sizeof(Sm80Storage<Traits>) == Traits::kSharedBytes);
  auto& storage = machine::shared<Sm80Storage<Traits>>();
  {
    const Sm80Place<Traits> place;
    const RowBlock block = sm80_row_block<Traits>(p, machine::block_index().x);
    store_row_facts<Traits>(p, block, storage);
    store_tiles<Traits>(p, block, place, storage);
    clear_columns<Traits::kBlockN, Traits::kHeadDim, Traits::kThreads>(storage.k, p.head_chunks, place.thread);
    clear_columns<Traits::kBlockN, Traits::kValueDim, Traits::kThreads>(storage.v, p.value_chunks, place.thread);
  }
  machine::sync_block();

  Sm80State<Traits> state;
#pragma unroll 1
  for (Sm80Attempt attempt = Sm80Attempt::fast;;) {
    attend<Traits>(p, attempt, storage, state);
    const RowBlock block = sm80_row_block<Traits>(p, machine::keep(machine::block_index().x));
    const bool wrong = write_result<Traits>(p, block, attempt, Sm80Place<Traits>(), storage, state);
    if (attempt == Sm80Attempt::clean) break;
    if (!machine::sync_block_or(wrong || attempt != Sm80Attempt::fast)) break;
    attempt = static_cast<Sm80Attempt>(static_cast<int>(attempt) + 1);
  }
}

}  // namespace sorot::inline v0::cuda
