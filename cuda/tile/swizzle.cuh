#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/machine/isa.cuh"

/// Tiles of 2-byte elements in shared memory, as ldmatrix reads them: row-major, the 16-byte chunks of a row exchanged
/// by XOR with some bits of the row, so that the same chunk of 8 neighbouring rows lies in 8 different bank groups.
namespace sorot::inline v0::tile {

inline constexpr int kChunkBytes = 16;
inline constexpr int kChunkElements = 8;  ///< of 2 bytes

/// A tile of kColumns columns. Rows of 64 bytes more than a multiple of 128 (32 or 96 columns) already alternate
/// between two halves of the banks, and need only 2 bits of XOR.
template <int kColumns>
struct Swizzle {
  static_assert(kColumns % 32 == 0);
  static constexpr int kPitch = kColumns * 2;  ///< bytes
  static constexpr int kChunks = kColumns / kChunkElements;
  static constexpr int kGroup = kPitch % 128 == 0 ? 8 : 4;  ///< chunks that are exchanged among each other

  /// What a row's chunks are exchanged by.
  static __device__ __forceinline__ constexpr int pattern(int row) { return kGroup == 8 ? row & 7 : row >> 1 & 3; }

  /// The byte where a chunk of a row begins.
  static __device__ __forceinline__ constexpr std::uint32_t at(int row, int chunk) {
    return static_cast<std::uint32_t>(row * kPitch + (chunk ^ pattern(row)) * kChunkBytes);
  }

  /// From the address of chunk c of a row to that of chunk c + `chunk`, a constant that shares no binary digit with c:
  /// one XOR, or nothing, and a constant that the instruction adds by itself. Rows 16 apart have one pattern: add rows
  /// * kPitch.
  static __device__ __forceinline__ constexpr std::uint32_t advance(std::uint32_t address, int chunk) {
    const int within = chunk % kGroup;
    return (address ^ static_cast<std::uint32_t>(within * kChunkBytes)) +
           static_cast<std::uint32_t>((chunk - within) * kChunkBytes);
  }
};

/// Key 16 q + 2 n + c of 64 is stored as row 8 n + 2 q + c: then what a thread has of a row of scores, columns 8 n + 2
/// q
/// + c of the accumulators, are 16 keys that are neighbours in memory.
__device__ __forceinline__ constexpr int interleaved_row(int key) { return key % 16 / 2 * 8 + key / 16 * 2 + key % 2; }

/// How kThreads threads copy a tile of kRows rows: kGroup lanes a row, 16 bytes each, then the row's next kGroup
/// chunks.
template <int kRows, int kColumns, int kThreads, bool kInterleaved>
struct TileCopy {
  using Layout = Swizzle<kColumns>;
  static constexpr int kLanes = Layout::kGroup;
  static constexpr int kStep = kThreads / kLanes;  ///< rows, a pass
  static constexpr int kPasses = kRows / kStep;
  static_assert(kRows % kStep == 0 && kStep % 16 == 0 && (!kInterleaved || kRows == 64));

  static __device__ __forceinline__ int chunk(int thread) { return thread % kLanes; }
  static __device__ __forceinline__ int row(int thread) { return thread / kLanes; }

  /// The byte of the tile where the thread's first chunk is stored.
  static __device__ __forceinline__ std::uint32_t begin(int thread) {
    return Layout::at(kInterleaved ? interleaved_row(row(thread)) : row(thread), chunk(thread));
  }

  /// Where pass i stores what the first pass stores at `to`.
  static __device__ __forceinline__ std::uint32_t stored(std::uint32_t to, int pass) {
    if constexpr (!kInterleaved) return to + static_cast<std::uint32_t>(pass * kStep * Layout::kPitch);
    constexpr int kSixteens = kStep / 16;  // each is 2 rows further
    const auto pattern = static_cast<std::uint32_t>((Layout::kGroup == 8 ? 2 : 1) * kSixteens * pass * kChunkBytes);
    return (to ^ pattern) + static_cast<std::uint32_t>(2 * kSixteens * pass * Layout::kPitch);
  }
};

}  // namespace sorot::inline v0::tile
