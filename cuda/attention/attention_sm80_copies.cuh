#pragma once

#include <cstdint>

#include "cuda/attention/attention_rows.cuh"
#include "cuda/attention/attention_sm80.h"
#include "cuda/attention/attention_sm80_scores.cuh"
#include "cuda/machine/isa.cuh"
#include "cuda/tile/swizzle.cuh"

/// Which rows, tiles and warps of attention_sm80 belong together, and the copies of Q, K and V to shared memory.
namespace sorot::inline v0::cuda {

/// The rows of the calling block.
template <class Traits>
__device__ __forceinline__ RowBlock sm80_row_block(const AttentionSm80Params& p, std::uint32_t index) {
  const auto row_blocks = static_cast<std::uint32_t>(p.row_blocks);
  const auto all_heads = static_cast<std::uint32_t>(p.all_heads);
  std::uint32_t row_block, head;
  if (p.long_first) {
    row_block = index / all_heads;
    head = index - row_block * all_heads;
    row_block = row_blocks - 1 - row_block;
  } else {
    head = index / row_blocks;
    row_block = index - head * row_blocks;
  }
  const auto group = static_cast<std::uint32_t>(p.group);
  const std::uint32_t heads = static_cast<std::uint32_t>(p.kv_heads) * (p.packed ? 1 : group);
  const std::uint32_t batch = head / heads;
  head -= batch * heads;
  const std::uint32_t kv_head = p.packed ? head : head / group;
  const std::int64_t first = std::int64_t{row_block} * Traits::kBlockM;
  const std::int64_t left = (p.packed ? p.group * p.queries : p.queries) - first;
  const int rows = left < Traits::kBlockM ? static_cast<int>(left) : Traits::kBlockM;
  if (!p.packed) return {p, batch, kv_head, std::int64_t{head - kv_head * group}, first, rows};
  // Heads are shorter than a block, so a block's first row is a small number.
  const std::uint32_t first_head = static_cast<std::uint32_t>(first) / static_cast<std::uint32_t>(p.queries);
  return {p, batch, kv_head, first_head, first - first_head * p.queries, rows};
}

/// Tiles that hold some of the keys `some`, and tiles of which all keys are in `all`.
__device__ __forceinline__ Sm80Tiles tiles_of(const KeyRange& some, const KeyRange& all) {
  if (some.end <= some.first) return {};
  return {static_cast<int>(some.first / kSm80Keys), static_cast<int>((some.end + kSm80Keys - 1) / kSm80Keys),
          static_cast<int>((all.first + kSm80Keys - 1) / kSm80Keys),
          static_cast<int>((all.end < 0 ? 0 : all.end) / kSm80Keys)};
}

/// What the block and each warp have to do, kept in shared memory so that the main loop has its registers.
template <class Traits>
__device__ __forceinline__ void store_tiles(const AttentionSm80Params& p, const RowBlock& block,
                                            const Sm80Place<Traits>& place, Sm80Storage<Traits>& storage) {
  if (place.thread == 0) {
    machine::store_shared(&storage.tiles, tiles_of(block.keys, block.all_attend(p, block.positions)));
    machine::store_shared(&storage.keys, limited_keys(p, block.keys));
  }
  if (place.lane != 0) return;
  const int left = block.rows - place.first_row;
  const int rows = left < 16 * Traits::kM ? left : 16 * Traits::kM;
  Sm80Tiles mine{};
  if (rows > 0) {
    const PositionRange positions = block.positions_of(p, place.first_row, place.first_row + rows);
    mine = tiles_of(block.some_attend(p, positions), block.all_attend(p, positions));
  }
  machine::store_shared(&storage.warp_tiles[place.warp], mine);
}

/// Copies K or V tiles, one after the other. Columns beyond those that exist are zeros from the start.
template <class Traits, int kColumns>
struct Sm80Copier {
  using Copy = tile::TileCopy<Traits::kBlockN, kColumns, Traits::kThreads, Traits::kGeneral>;
  using Layout = typename Copy::Layout;
  const unsigned char* next;  ///< the thread's first chunk of the next tile
  std::uint32_t to;           ///< where it belongs
  int chunk;

  __device__ __forceinline__ Sm80Copier(const void* data, std::int64_t head_offset, std::int64_t key_stride,
                                        std::int64_t first_key, std::uint32_t tile, int thread) {
    chunk = Copy::chunk(thread);
    const int row = Copy::row(thread);
    next = static_cast<const unsigned char*>(data) +
           2 * (head_offset + (first_key + row) * key_stride + chunk * tile::kChunkElements);
    to = tile + Copy::begin(thread);
  }

  /// The next tile, of which every row is wanted.
  __device__ __forceinline__ void copy(int chunks, const Sm80Steps& steps) {
    const unsigned char* from[Copy::kPasses];
#pragma unroll
    for (int i = 0; i < Copy::kPasses; ++i) from[i] = i == 0 ? next : next + steps.row[i];
    next += steps.tile;
#pragma unroll
    for (int j = 0; j < Layout::kChunks; j += Copy::kLanes) {
      if (chunk + j >= chunks) continue;
#pragma unroll
      for (int i = 0; i < Copy::kPasses; ++i) {
        machine::cp_async(Copy::stored(to, i) + static_cast<std::uint32_t>(j * tile::kChunkBytes),
                          from[i] + j * tile::kChunkBytes);
      }
    }
  }

  /// Tile number `tile`; rows outside `keys` are zeros and are not read.
  __device__ __forceinline__ void copy_edge(int chunks, const Sm80Steps& steps, const Sm80KeyRange& keys, int tile,
                                            int thread) {
#pragma unroll 1
    for (int i = 0; i < Copy::kPasses; ++i) {
      const int key = tile * Traits::kBlockN + Copy::row(thread) + i * Copy::kStep;
      const bool valid = key >= keys.first && key < keys.end;
      const unsigned char* from = next + i * steps.row[1];
#pragma unroll
      for (int j = 0; j < Layout::kChunks; j += Copy::kLanes) {
        if (chunk + j >= chunks) continue;
        machine::cp_async_or_zero(Copy::stored(to, i) + static_cast<std::uint32_t>(j * tile::kChunkBytes),
                                  valid ? from + j * tile::kChunkBytes : next, valid);
      }
    }
    next += steps.tile;
  }
};

/// Zeros in the columns that no copy fills, of kRows rows of kColumns.
template <int kRows, int kColumns, int kThreads>
__device__ __forceinline__ void clear_columns(unsigned char* tile, int chunks, int thread) {
  using Layout = tile::Swizzle<kColumns>;
  if (chunks == Layout::kChunks) return;
  for (int row = thread; row < kRows; row += kThreads) {
    for (int chunk = chunks; chunk < Layout::kChunks; ++chunk) {
      machine::store_shared(reinterpret_cast<machine::Word4*>(tile + Layout::at(row, chunk)), machine::Word4{});
    }
  }
}

/// Q of the block; rows beyond the last are zeros.
template <class Traits>
__device__ __forceinline__ void copy_queries(const AttentionSm80Params& p, const RowBlock& block,
                                             Sm80Storage<Traits>& storage, int thread) {
  using Copy = tile::TileCopy<Traits::kBlockM, Traits::kHeadDim, Traits::kThreads, false>;
  using Layout = typename Copy::Layout;
  const std::uint32_t to = machine::shared_address(storage.q);
  const auto* q = static_cast<const unsigned char*>(p.q);
#pragma unroll 1
  for (int i = 0; i < Copy::kPasses; ++i) {
    const int row = Copy::row(thread) + i * Copy::kStep;
    const bool valid = row < block.rows;
    const unsigned char* from = valid ? q + 2 * row_offset(p.q_strides, block, block.at(p, row)) : q;
#pragma unroll 1
    for (int chunk = Copy::chunk(thread); chunk < p.head_chunks; chunk += Copy::kLanes) {
      machine::cp_async_or_zero(to + Layout::at(row, chunk), valid ? from + chunk * tile::kChunkBytes : q, valid);
    }
  }
}

}  // namespace sorot::inline v0::cuda
