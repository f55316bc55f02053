#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/machine/isa.cuh"
#include "cuda/tile/convert.cuh"
#include "cuda/tile/load_path.h"

/// Global memory -> a tile of f32 in shared memory, row-major with a pitch of kColumns + 4 floats: then 8 lanes that
/// read 16 bytes each at one column of 8 different rows touch all 32 banks once, because 8 rows are 4 banks apart.
namespace sorot::inline v0::tile {

template <int kColumns>
inline constexpr int kPitch = kColumns + 4;

/// 16 bytes of T as floats. Of 8 halves, lanes 4-7 of every 8 store the second four first: 8 lanes 32 bytes apart
/// would meet each bank twice.
template <class T>
__device__ __forceinline__ void store_vector(float* to, const Word4& words, bool second_first) {
  if constexpr (sizeof(T) == 4) {
    machine::store_shared(reinterpret_cast<Float4*>(to), elements_of<T>(words, 0));
  } else {
    const Float4 first = elements_of<T>(words, 0);
    const Float4 second = elements_of<T>(words, 4);
    machine::store_shared(reinterpret_cast<Float4*>(to + (second_first ? 4 : 0)), second_first ? second : first);
    machine::store_shared(reinterpret_cast<Float4*>(to + (second_first ? 0 : 4)), second_first ? first : second);
  }
}

/// Fills tile[kRows][kColumns] by all kThreads threads of the block. `row_at(r)` is where row r begins, null for a row
/// of zeros; columns from `columns` on are zeros.
template <class T, int kRows, int kColumns, int kThreads, class RowAt>
__device__ __forceinline__ void load_tile(float* tile, int columns, std::int64_t column_stride, LoadPath path,
                                          RowAt row_at) {
  const int thread = static_cast<int>(machine::thread_index().x);
  if (path == LoadPath::vectors) {
    constexpr int kVector = kVectorElements<T>;
    constexpr int kRowVectors = kColumns / kVector;
    constexpr int kSteps = (kRows * kRowVectors + kThreads - 1) / kThreads;
    constexpr int kBatch = kSteps < 4 ? kSteps : 4;  // loads in flight before the first of them is needed
    static_assert(kRows * kRowVectors % kThreads == 0 || kSteps == 1);
    static_assert(kSteps % kBatch == 0);
#pragma unroll 1
    for (int step = 0; step < kSteps; step += kBatch) {
      Word4 words[std::size_t{kBatch}];
#pragma unroll
      for (int s = 0; s < kBatch; ++s) {
        const int index = thread + (step + s) * kThreads;
        const int row = index / kRowVectors;
        const bool inside = kRows * kRowVectors % kThreads == 0 || row < kRows;
        const int column = index % kRowVectors * kVector;
        const T* begin = inside && column < columns ? row_at(row) : nullptr;
        words[s] = begin == nullptr ? Word4{} : machine::load_global(reinterpret_cast<const Word4*>(begin + column));
      }
#pragma unroll
      for (int s = 0; s < kBatch; ++s) {
        const int index = thread + (step + s) * kThreads;
        const int row = index / kRowVectors;
        float* to = tile + row * kPitch<kColumns> + index % kRowVectors * kVector;
        const bool inside = kRows * kRowVectors % kThreads == 0 || row < kRows;
        if (inside) store_vector<T>(to, words[s], (thread & 4) != 0);
      }
    }
    return;
  }
  const bool along_rows = path == LoadPath::along_rows;
#pragma unroll 4
  for (int index = thread; index < kRows * kColumns; index += kThreads) {
    const int row = along_rows ? index % kRows : index / kColumns;
    const int column = along_rows ? index / kRows : index % kColumns;
    const T* begin = column < columns ? row_at(row) : nullptr;
    const float value =
        begin == nullptr ? 0.0F : machine::to_float(machine::load_global(begin + column * column_stride));
    machine::store_shared(tile + row * kPitch<kColumns> + column, value);
  }
}

}  // namespace sorot::inline v0::tile
