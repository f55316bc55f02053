#pragma once

#include <cstdint>

#include "cuda/attention/attention_params.h"
#include "cuda/machine/isa.cuh"
#include "cuda/tile/online_softmax.cuh"

/// Which query rows a block of any attention kernel has, and which keys they may attend.
///
/// The rows of a kv head are those of all query heads that share it, packed head after head: row r is query r % Sq of
/// the group's head r / Sq. A block has some of them, next to each other.
namespace sorot::inline v0::cuda {

struct HeadAndQuery {
  std::int64_t head, query;
};

/// Positions p of some rows lie between, inclusive.
struct PositionRange {
  std::int64_t lowest, highest;
};

/// Keys first .. end - 1; none if end <= first.
struct KeyRange {
  std::int64_t first, end;
};

/// The rows of a block and the keys they may attend.
struct RowBlock {
  std::int64_t batch, kv_head;
  std::int64_t first_row;    ///< among the rows of the kv head
  std::int64_t first_head;   ///< h of that row
  std::int64_t first_query;  ///< i of that row
  int rows;                  ///< that exist
  std::int64_t length;       ///< keys of the sequence
  std::int64_t shift;        ///< o in p = i + o
  PositionRange positions;   ///< of all rows
  KeyRange keys;             ///< keys outside are attended by no row

  /// `row_count` rows from query `query` of the group's head `head` on.
  __device__ __forceinline__ RowBlock(const AttentionParams& p, std::int64_t of_batch, std::int64_t of_kv_head,
                                      std::int64_t head, std::int64_t query, int row_count)
      : batch(of_batch),
        kv_head(of_kv_head),
        first_row(head * p.queries + query),
        first_head(of_kv_head * p.group + head),
        first_query(query),
        rows(row_count) {
    length = p.keys;
    if (p.kv_lengths != nullptr) {
      const std::int64_t given = machine::load_global(p.kv_lengths + batch * p.kv_lengths_stride);
      length = given < 0 ? 0 : given < p.keys ? given : p.keys;
    }
    shift = p.bottom_right ? length - p.queries : 0;
    if (p.offsets != nullptr) shift = machine::load_global(p.offsets + batch * p.offsets_stride);
    positions = positions_of(p, 0, rows);
    keys = some_attend(p, positions);
  }

  /// Positions of the block's rows first .. end - 1.
  __device__ __forceinline__ PositionRange positions_of(const AttentionParams& p, int first, int end) const {
    const bool one_head = first_query + end <= p.queries;
    return {shift + (one_head ? first_query + first : 0), shift + (one_head ? first_query + end : p.queries) - 1};
  }

  /// Keys that some row at such positions attends, as far as positions go.
  __device__ __forceinline__ KeyRange some_attend(const AttentionParams& p, const PositionRange& at) const {
    KeyRange range{0, length};
    if (p.window_left >= 0 && at.lowest - p.window_left > 0) range.first = at.lowest - p.window_left;
    if (p.window_right >= 0 && at.highest + p.window_right + 1 < length) range.end = at.highest + p.window_right + 1;
    return range;
  }

  /// Keys that every row at such positions attends, as far as positions go.
  __device__ __forceinline__ KeyRange all_attend(const AttentionParams& p, const PositionRange& at) const {
    KeyRange range{0, length};
    if (p.window_left >= 0 && at.highest - p.window_left > 0) range.first = at.highest - p.window_left;
    if (p.window_right >= 0 && at.lowest + p.window_right + 1 < length) range.end = at.lowest + p.window_right + 1;
    return range;
  }

  /// Row r of the block. Divides at most 32-bit numbers: long heads end at most once within 128 rows.
  __device__ __forceinline__ HeadAndQuery at(const AttentionParams& p, int row) const {
    const std::int64_t query = first_query + row;
    if (query < p.queries) return {first_head, query};
    if (p.queries >= 128) return {first_head + 1, query - p.queries};
    const auto heads = static_cast<std::uint32_t>(query) / static_cast<std::uint32_t>(p.queries);
    return {first_head + heads, query - heads * p.queries};
  }

  /// The row's number among all of the problem, as the workspace knows it: (b * H + h) * Sq + i.
  __device__ __forceinline__ std::int64_t number(const AttentionParams& p, int row) const {
    return (batch * p.kv_heads + kv_head) * p.group * p.queries + first_row + row;
  }
};

/// The element of row (b, h, i) of a [B, H, Sq, ...] tensor.
__device__ __forceinline__ std::int64_t row_offset(const std::int64_t (&strides)[4], const RowBlock& block,
                                                   const HeadAndQuery& at) {
  return block.batch * strides[0] + at.head * strides[1] + at.query * strides[2];
}

/// The row's sink, -inf if none.
__device__ __forceinline__ float load_sink(const AttentionParams& p, std::int64_t head) {
  return p.sinks == nullptr ? tile::minus_infinity() : machine::load_global(p.sinks + head * p.sinks_stride);
}

}  // namespace sorot::inline v0::cuda
