#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/core/problem/attention.h"
#include "cuda/attention/attention_simt.h"
#include "sorot/context.h"
#include "sorot/dtype.h"
#include "sorot/status.h"
#include "sorot/version.h"

/// Which kernel serves an attention problem on a CUDA device, and how. Pure: no device is asked, no tensor read.
namespace sorot::inline v0::cuda {

inline constexpr char kAttentionSimt[] = "attention_simt";

/// Every instantiation of every attention kernel of this backend.
inline constexpr int kAttentionKernels = 18;
extern const KernelInfo kAttentionKernelInfos[kAttentionKernels];

/// There are weights to write. Not asked by their pointer: a plan serves any.
inline bool wants_weights(const core::AttentionProblem& p) noexcept {
  return p.weights.dtype != DType::none && p.keys > 0;
}

/// How attention_simt serves a problem.
struct AttentionSimtPlan {
  SimtTile tile = {};
  const char* variant = nullptr;  ///< of kAttentionKernelInfos

  std::int64_t rows = 0;        ///< that share a kv head: group * Sq
  std::int64_t row_blocks = 0;  ///< ceil(rows / tile.queries)
  std::int32_t splits = 1;      ///< blocks that share a row block's keys
  std::int64_t blocks = 0;      ///< B * Hkv * row_blocks * splits

  SimtTile weights_tile = {};  ///< of the kernel that writes the weights, if they are wanted
  std::int64_t weights_row_blocks = 0;
  std::int64_t weights_key_tiles = 0;
  std::int64_t weights_blocks = 0;

  tile::LoadPath q_path = {}, k_path = {}, v_path = {};
  bool out_vectors = false;
  bool weight_pairs = false;

  std::size_t partial_out_at = 0;  ///< bytes into the workspace
  std::size_t partial_sums_at = 0;
  std::size_t row_sums_at = 0;
  std::int32_t partial_pitch = 0;
  std::size_t workspace_bytes = 0;
};

/// Plans a checked problem. kUnsupported with the reason if attention_simt cannot serve it.
Status plan_attention_simt(const core::AttentionProblem& problem, const core::CudaDevice& device,
                           AttentionSimtPlan& plan) noexcept;

}  // namespace sorot::inline v0::cuda
