#pragma once

#include <cstdint>

#include "sorot/version.h"

/// What every attention kernel is given.
namespace sorot::inline v0::cuda {

/// An AttentionProblem as kernels take it. Strides are in elements, of [B, H or Hkv, S, D] and the like.
struct AttentionParams {
  const void* q;
  const void* k;
  const void* v;
  void* out;
  std::int64_t q_strides[4];
  std::int64_t k_strides[4];
  std::int64_t v_strides[4];
  std::int64_t out_strides[4];

  const std::int32_t* kv_lengths;  ///< null: Skv each
  const std::int32_t* offsets;     ///< null unless positions begin there
  std::int64_t kv_lengths_stride;
  std::int64_t offsets_stride;
  bool bottom_right;                       ///< positions begin at length - Sq
  std::int64_t window_left, window_right;  ///< -1: unbounded

  const std::uint8_t* mask;  ///< null: none
  const void* bias;          ///< null: none
  std::int64_t mask_strides[4];
  std::int64_t bias_strides[4];
  bool bias_is_f32;  ///< else T
  const float* alibi_slopes;
  const float* sinks;
  std::int64_t alibi_stride;
  std::int64_t sinks_stride;
  float scale, softcap;

  float* lse;  ///< null: not wanted
  void* weights;
  std::int64_t lse_strides[3];
  std::int64_t weights_strides[4];
  bool weights_are_f32;  ///< else T

  std::int64_t kv_heads, group, queries, keys;
  std::int32_t head_dim, value_dim;
};

}  // namespace sorot::inline v0::cuda
