#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/attention/attention_params.h"
#include "cuda/machine/runtime.h"
#include "cuda/tile/load_path.h"
#include "sorot/dtype.h"

/// What launcher, plan and kernels of attention_simt agree on: shapes of blocks, parameters, launches.
namespace sorot::inline v0::cuda {

inline constexpr int kSimtThreads = 128;

/// What a block works on at a time. Wide: each of the 4 warps has its own quarter of the rows. Few rows: each warp has
/// all rows and its own quarter of the keys, so that one query row (decoding) still keeps 4 warps busy.
struct SimtTile {
  int head_dim;  ///< class: the largest D and Dv it serves
  int queries;   ///< rows of a block: query rows of all heads that share a kv head, packed
  int keys;
  bool few_rows;
};

/// Every shape of block; kernel instantiations are these times f32, f16, bf16.
inline constexpr SimtTile kSimtTiles[] = {
    {64, 64, 64, false},  {64, 8, 64, true},   //
    {128, 64, 32, false}, {128, 8, 64, true},  //
    {256, 32, 16, false}, {256, 8, 32, true},
};
inline constexpr int kSimtFewRows = 8;

/// The entry of kSimtTiles for a class of head dimension: 64, 128 or 256.
constexpr SimtTile simt_tile(int head_dim, bool few_rows) noexcept {
  for (const SimtTile& tile : kSimtTiles) {
    if (tile.head_dim == head_dim && tile.few_rows == few_rows) return tile;
  }
  return {};
}

/// Shared memory of a block: Q, then K and V by turns, then P transposed; 4 floats more a row against bank conflicts.
/// At most 58 KB, so that sm_75 (64 KB) runs every one.
constexpr std::size_t simt_shared_bytes(const SimtTile& tile) noexcept {
  const int floats = (tile.queries + tile.keys) * (tile.head_dim + 4) + tile.keys * (tile.queries + 4);
  return static_cast<std::size_t>(floats) * sizeof(float);
}

/// Parameters of all three kernels.
struct AttentionSimtParams : AttentionParams {
  std::int64_t rows;        ///< of one kv head: group * Sq; row r is query r % Sq of the group's head r / Sq
  std::int64_t row_blocks;  ///< blocks that share a kv head's rows
  std::int64_t key_tiles;   ///< of the weights kernel: blocks that share a row block's keys
  std::int32_t splits;

  tile::LoadPath q_path, k_path, v_path;
  bool out_vectors;   ///< four elements of out can be stored at once
  bool weight_pairs;  ///< two elements of 2-byte weights can be stored at once

  // Workspace. Rows are numbered over all kv heads: (b * Hkv + kv head) * rows + r, that is (b * H + h) * Sq + i.
  std::int64_t all_rows;
  float* partial_out;          ///< [splits, all_rows, partial_pitch]: out of the split's keys alone; null: 1 split
  float* partial_sums;         ///< [splits, all_rows, 2]: m and Z of the split
  float* row_sums;             ///< [all_rows, 2]: m and Z with the sink, for the weights; null: not wanted
  std::int32_t partial_pitch;  ///< Dv rounded up to 4
};

/// The launches of one element type: float, float16 or bfloat16. Each type is instantiated in a file of its own,
/// attention_simt_f32.cu and so on, so that compilers work on them side by side.
template <class T>
struct AttentionSimtLaunches {
  /// out, lse, and the workspace that the other two read. The grid is [splits * row blocks * kv heads * B].
  static Status attend(const SimtTile& tile, std::int64_t blocks, const AttentionSimtParams& params,
                       machine::Stream stream) noexcept;

  /// Joins the splits in a fixed order. One warp a row.
  static Status merge(const AttentionSimtParams& params, machine::Stream stream) noexcept;

  /// weights, from row_sums. One block a tile; `tile` is the wide one.
  static Status write_weights(const SimtTile& tile, std::int64_t blocks, const AttentionSimtParams& params,
                              machine::Stream stream) noexcept;
};
inline constexpr int kSimtMergeRows = 4;

}  // namespace sorot::inline v0::cuda
