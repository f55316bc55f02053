#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/attention/attention_params.h"
#include "cuda/machine/runtime.h"
#include "cuda/machine/types.h"
#include "sorot/dtype.h"

/// What launcher, plan and kernels of attention_sm80 agree on: shapes of blocks, parameters, launches.
namespace sorot::inline v0::cuda {

inline constexpr int kSm80Keys = 64;  ///< of a K or V tile

/// What a block works on at a time. Each warp has queries / warps rows: 16 or 32.
struct Sm80Tile {
  int head_dim, value_dim;  ///< the largest D and Dv it serves; columns beyond D and Dv are zeros
  int queries;              ///< rows of a block
  int warps;

  constexpr int threads() const noexcept { return warps * 32; }
};

/// Every shape of block; kernel instantiations are these times f16, bf16, times plain, general.
///
/// 32 rows a warp as long as registers allow: each fragment of K and V that is read then serves two products. Two
/// blocks fit into the 164 KB of an sm_80's multiprocessor up to D = 128. The first two of 64 rows are for short
/// sequences; the last one is for devices whose blocks have 99 KB (sm_86, sm_120).
inline constexpr Sm80Tile kSm80Tiles[] = {
    {32, 32, 128, 4},   {64, 64, 128, 4},   {96, 96, 128, 4}, {128, 128, 128, 4}, {192, 128, 128, 4},
    {192, 192, 128, 8}, {256, 256, 128, 8}, {64, 64, 64, 4},  {128, 128, 64, 4},  {256, 256, 64, 4},
};
inline constexpr int kSm80TileCount = static_cast<int>(sizeof kSm80Tiles / sizeof kSm80Tiles[0]);

/// Those that the general kernel has. It takes longer to compile, and less of it: the next larger tile serves the rest.
inline constexpr int kSm80GeneralTiles[] = {1, 2, 3, 5, 6, 9};
inline constexpr int kSm80GeneralTileCount = static_cast<int>(sizeof kSm80GeneralTiles / sizeof kSm80GeneralTiles[0]);

/// The kernel of weights, one tile of scores a block, for D up to head_dim; it has no use for V.
inline constexpr Sm80Tile kSm80WeightsTiles[] = {{64, 32, 128, 4}, {128, 32, 128, 4}, {256, 32, 64, 4}};
inline constexpr int kSm80WeightsTileCount = static_cast<int>(sizeof kSm80WeightsTiles / sizeof kSm80WeightsTiles[0]);

/// Shared memory of a block: Q, a tile of K and one of V, which tiles each warp works on, and which keys each row may
/// attend; general kernels also keep where a row's bias and mask begin, and its slope and query.
constexpr std::size_t sm80_shared_bytes(const Sm80Tile& tile, bool general) noexcept {
  const int halves = tile.queries * tile.head_dim + kSm80Keys * (tile.head_dim + tile.value_dim);
  const int facts = 16 + tile.warps * 16 + 8 + (general ? tile.queries * 32 + 8 : tile.queries * 8);
  return (static_cast<std::size_t>(halves) * 2 + static_cast<std::size_t>(facts) + 1023) / 1024 * 1024;
}

/// How far it is, in bytes of K or V, from a thread's first row of a tile to its others and to the next tile. Sums of
/// the same number, but from memory they are operands of the additions, and cost no instruction of their own.
struct Sm80Steps {
  std::int64_t row[4];  ///< [0] is 0
  std::int64_t tile;
};

/// Parameters of all kernels.
struct AttentionSm80Params : AttentionParams {
  std::int64_t row_blocks;  ///< of a head, or of a kv head if packed
  std::int64_t all_heads;   ///< B * H, or B * Hkv if packed
  std::int64_t key_tiles;   ///< of the weights kernel: blocks that share a row block's keys
  bool packed;              ///< heads are short: blocks have the rows of all heads of a group, head after head
  bool long_first;          ///< the last row block of all heads first, instead of head after head

  Sm80Steps k_steps, v_steps;
  std::int32_t head_chunks, value_chunks;  ///< D and Dv in 16 bytes

  bool general;           ///< what the weights kernel shall repeat
  float log2_scale;       ///< from a score, or a product in the plain kernel, to the exponent of 2
  float slack;            ///< by so much, 8 in the exponent, a row's maximum may grow before its sums are rescaled
  float inverse_softcap;  ///< of the general kernel; 0: no softcap
  bool bias_vectors, mask_vectors, weights_vectors;  ///< 16 bytes at a time

  machine::Float4* row_sums;  ///< workspace [B * H * Sq]: reference, Z, 1 if large; null: no weights wanted
};

/// The launches of one element type: float16 or bfloat16.
template <class T>
struct AttentionSm80Launches {
  /// out, lse and row_sums, by entry `tile` of kSm80Tiles. The grid is [row_blocks * all_heads].
  static Status attend(int tile, bool general, std::int64_t blocks, const AttentionSm80Params& params,
                       machine::Stream stream) noexcept;

  /// weights from row_sums, by entry `tile` of kSm80WeightsTiles. The grid is [row_blocks * all_heads *
  /// key_tiles].
  static Status write_weights(int tile, std::int64_t blocks, const AttentionSm80Params& params,
                              machine::Stream stream) noexcept;
};

}  // namespace sorot::inline v0::cuda
