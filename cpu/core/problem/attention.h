#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/core/element.h"
#include "sorot/attention.h"

namespace sorot::inline v0::core {

/// AttentionArgs, checked and normalised: what a backend sees. Views have full rank, stride 0 where they broadcast;
/// absent ones are default-constructed.
struct AttentionProblem {
  std::int64_t batch = 0;      ///< B
  std::int64_t heads = 0;      ///< H, query heads
  std::int64_t kv_heads = 0;   ///< Hkv
  std::int64_t queries = 0;    ///< Sq
  std::int64_t keys = 0;       ///< Skv
  std::int64_t head_dim = 0;   ///< D
  std::int64_t value_dim = 0;  ///< Dv
  std::int64_t group = 1;      ///< H / Hkv: query head h reads kv head h / group

  ConstTensorView q, k, v;              ///< rank 4
  ConstTensorView kv_lengths;           ///< [B] i32, in device memory
  ConstTensorView offsets;              ///< [B] i32, in device memory; present iff align is offsets
  ConstTensorView mask, bias;           ///< [B, H, Sq, Skv]
  ConstTensorView alibi_slopes, sinks;  ///< [H] f32
  TensorView out, weights;              ///< rank 4
  TensorView lse;                       ///< rank 3

  Align align = Align::top_left;
  std::int64_t window_left = -1;   ///< -1: unbounded
  std::int64_t window_right = -1;  ///< -1: unbounded; causal is folded in as min(right, 0)
  double scale = 1;                ///< already rounded to f32 unless the tensors are f64; so is softcap
  double softcap = 0;
};

/// No query row: nothing is computed, nothing written.
inline bool has_no_rows(const AttentionProblem& p) noexcept { return p.batch == 0 || p.heads == 0 || p.queries == 0; }

/// Keys of sequence b that are no padding. Reads kv_lengths: host memory only.
inline std::int64_t key_count(const AttentionProblem& p, std::int64_t b) noexcept {
  if (p.kv_lengths.data == nullptr) return p.keys;
  const std::int64_t length = static_cast<const std::int32_t*>(p.kv_lengths.data)[offset(p.kv_lengths, b)];
  return std::clamp<std::int64_t>(length, 0, p.keys);
}

/// o in p = i + o: where query 0 of sequence b stands among its keys. Reads offsets: host memory only.
inline std::int64_t position_of_first_query(const AttentionProblem& p, std::int64_t b) noexcept {
  switch (p.align) {
    case Align::top_left: return 0;
    case Align::bottom_right: return key_count(p, b) - p.queries;
    case Align::offsets: return static_cast<const std::int32_t*>(p.offsets.data)[offset(p.offsets, b)];
  }
  return 0;
}

}  // namespace sorot::inline v0::core
