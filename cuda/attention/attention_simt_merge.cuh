#pragma once

#include <cstdint>

#include "cuda/attention/attention_simt.cuh"

/// attention_simt_merge: joins the splits of attention_simt, one warp a row.
///
///   partial out [splits, rows, Dv] and (m, Z) [splits, rows]  ->  out, lse, row sums
///
///   out = sum over splits, in their order, of (exp(m_s - m) Z_s / Z) * out_s
///
/// The surprise: each part is already a mean of v, and its weight is at most 1, so parts that were computed carefully
/// and parts that were not have the same scale, and v near the largest float does not overflow. The sum is of halves,
/// so that only a part that is not finite can make it so.
namespace sorot::inline v0::cuda {

template <class T>
__global__ void __launch_bounds__(kSimtThreads) attention_simt_merge(const __grid_constant__ AttentionSimtParams p) {
  static_assert(kSimtMergeRows * machine::kWarpSize == kSimtThreads);
  const int thread = static_cast<int>(machine::thread_index().x);
  const int lane = thread % 32;
  const std::int64_t row = std::int64_t{machine::block_index().x} * kSimtMergeRows + thread / 32;
  if (row >= p.all_rows) return;
  const std::int64_t head_of_all = row / p.queries;
  const std::int64_t batch = head_of_all / (p.kv_heads * p.group);
  const HeadAndQuery at{head_of_all - batch * p.kv_heads * p.group, row - head_of_all * p.queries};

  const auto* partial_sums = reinterpret_cast<const Float2*>(p.partial_sums);
  const auto sums_of = [&](int split) { return machine::load_global(partial_sums + split * p.all_rows + row); };
  tile::RowSum keys{tile::minus_infinity(), 0};
  for (int split = 0; split < p.splits; ++split) keys.m = machine::max(keys.m, sums_of(split).x);
  for (int split = 0; split < p.splits; ++split) {
    const Float2 sums = sums_of(split);
    keys.z = machine::fma(sums.y, tile::exp_difference(sums.x, tile::safe_maximum(keys.m)), keys.z);
  }
  const tile::RowSum sum = tile::join_sink(keys, load_sink(p, at.head));
  const float safe = tile::safe_maximum(sum.m);
  const bool zero = keys.empty() && !tile::is_nan(sum.z);

  const std::int64_t row_begin = batch * p.out_strides[0] + at.head * p.out_strides[1] + at.query * p.out_strides[2];
  for (int column = lane * 4; column < p.value_dim; column += 32 * 4) {
    float values[4] = {};
    for (int split = 0; split < p.splits && !zero; ++split) {
      const Float2 sums = sums_of(split);
      const float weight = tile::exp_difference(sums.x, safe) * sums.y / sum.z * 0.5F;
      const std::int64_t index = (split * p.all_rows + row) * p.partial_pitch + column;
      const Float4 part = machine::load_global(reinterpret_cast<const Float4*>(p.partial_out + index));
      values[0] = machine::fma(weight, part.x, values[0]);
      values[1] = machine::fma(weight, part.y, values[1]);
      values[2] = machine::fma(weight, part.z, values[2]);
      values[3] = machine::fma(weight, part.w, values[3]);
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) values[e] = tile::mean_from(2 * values[e], values[e]);
    write_out<T>(p, row_begin, column, values);
  }
  if (lane == 0) write_sums(p, batch, at, row, sum);
}

}  // namespace sorot::inline v0::cuda
