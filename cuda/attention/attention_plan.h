#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/core/problem/attention.h"
#include "cuda/attention/attention_simt.h"
#include "cuda/attention/attention_sm80.h"
#include "sorot/context.h"
#include "sorot/dtype.h"
#include "sorot/status.h"
#include "sorot/version.h"

/// Which kernel serves an attention problem on a CUDA device, and how. Pure: no device is asked, no tensor read.
namespace sorot::inline v0::cuda {

inline constexpr char kAttentionSimt[] = "attention_simt";
inline constexpr char kAttentionSm80Plain[] = "attention_sm80_plain";
inline constexpr char kAttentionSm80General[] = "attention_sm80_general";

/// Every instantiation of every attention kernel of this backend.
inline constexpr int kAttentionSimtKernels = 18;
inline constexpr int kAttentionKernels = kAttentionSimtKernels + 2 * (kSm80TileCount + kSm80GeneralTileCount);
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

/// Blocks of rows of one head, or of all heads of a group.
struct Sm80Rows {
  bool packed = false;
  std::int64_t row_blocks = 0;  ///< of a head, or of a kv head if packed
  std::int64_t heads = 0;       ///< B * H, or B * Hkv if packed
};

/// How attention_sm80 serves a problem, by its plain or its general kernel.
struct AttentionSm80Plan {
  bool general = false;
  int tile = 0;                   ///< of kSm80Tiles
  const char* variant = nullptr;  ///< of kAttentionKernelInfos
  Sm80Rows rows;
  std::int64_t blocks = 0;
  bool long_first = false;  ///< the order of the blocks

  int weights_tile = 0;  ///< of kSm80WeightsTiles, if weights are wanted
  Sm80Rows weights_rows;
  std::int64_t weights_key_tiles = 0;
  std::int64_t weights_blocks = 0;

  bool bias_vectors = false, mask_vectors = false, weights_vectors = false;
  std::size_t workspace_bytes = 0;  ///< all of it row sums
};

/// Plans a checked problem for one of the two kernels. kUnsupported with the reason if it cannot serve it.
Status plan_attention_sm80(const core::AttentionProblem& problem, const core::CudaDevice& device, bool general,
                           AttentionSm80Plan& plan) noexcept;

/// The kernel that serves a problem fastest, one of the three names above, and why not another in `reason`: a sentence
/// of at most `bytes` bytes.
const char* choose_attention_kernel(const core::AttentionProblem& problem, const core::CudaDevice& device, char* reason,
                                    std::size_t bytes) noexcept;

}  // namespace sorot::inline v0::cuda
