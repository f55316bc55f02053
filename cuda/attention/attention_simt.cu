#include "cuda/attention/attention_simt.cuh"

#include <cstddef>
#include <cstdint>

#include "cuda/attention/attention_simt.h"
#include "cuda/attention/attention_simt_merge.cuh"
#include "cuda/attention/attention_simt_weights.cuh"
#include "cuda/machine/runtime.h"

/// Every instantiation of attention_simt and its helpers, and the switches that choose one.
namespace sorot::inline v0::cuda {

template __global__ void attention_simt<float, 64, false>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt<float, 64, true>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt<float, 128, false>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt<float, 128, true>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt<float, 256, false>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt<float, 256, true>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt<float16, 64, false>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt<float16, 64, true>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt<float16, 128, false>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt<float16, 128, true>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt<float16, 256, false>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt<float16, 256, true>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt<bfloat16, 64, false>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt<bfloat16, 64, true>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt<bfloat16, 128, false>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt<bfloat16, 128, true>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt<bfloat16, 256, false>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt<bfloat16, 256, true>(const __grid_constant__ AttentionSimtParams);

template __global__ void attention_simt_merge<float>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt_merge<float16>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt_merge<bfloat16>(const __grid_constant__ AttentionSimtParams);

template __global__ void attention_simt_weights<float, 64>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt_weights<float, 128>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt_weights<float, 256>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt_weights<float16, 64>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt_weights<float16, 128>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt_weights<float16, 256>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt_weights<bfloat16, 64>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt_weights<bfloat16, 128>(const __grid_constant__ AttentionSimtParams);
template __global__ void attention_simt_weights<bfloat16, 256>(const __grid_constant__ AttentionSimtParams);

namespace {

using Kernel = void (*)(AttentionSimtParams);

template <class T>
Kernel forward_kernel(const SimtTile& tile) {
  switch (tile.head_dim) {
    case 64: return tile.few_rows ? attention_simt<T, 64, true> : attention_simt<T, 64, false>;
    case 128: return tile.few_rows ? attention_simt<T, 128, true> : attention_simt<T, 128, false>;
    case 256: return tile.few_rows ? attention_simt<T, 256, true> : attention_simt<T, 256, false>;
    default: return nullptr;
  }
}

template <class T>
Kernel weights_kernel(const SimtTile& tile) {
  switch (tile.head_dim) {
    case 64: return attention_simt_weights<T, 64>;
    case 128: return attention_simt_weights<T, 128>;
    case 256: return attention_simt_weights<T, 256>;
    default: return nullptr;
  }
}

Status launch(const char* name, Kernel kernel, std::int64_t blocks, std::size_t shared_bytes,
              const AttentionSimtParams& params, machine::Stream stream) {
  if (kernel == nullptr) return {StatusCode::kInternal, "attention_simt was planned for a type or tile it lacks"};
  const machine::LaunchConfig config{
      name, {static_cast<unsigned>(blocks)}, {static_cast<unsigned>(kSimtThreads)}, shared_bytes, stream};
  return machine::launch(config, kernel, params);
}

}  // namespace

Status launch_attention_simt(DType dtype, const SimtTile& tile, std::int64_t blocks, const AttentionSimtParams& params,
                             machine::Stream stream) noexcept {
  Kernel kernel = nullptr;
  switch (dtype) {
    case DType::f32: kernel = forward_kernel<float>(tile); break;
    case DType::f16: kernel = forward_kernel<float16>(tile); break;
    case DType::bf16: kernel = forward_kernel<bfloat16>(tile); break;
    default: break;
  }
  return launch("attention_simt", kernel, blocks, simt_shared_bytes(tile), params, stream);
}

Status launch_attention_simt_merge(DType dtype, const AttentionSimtParams& params, machine::Stream stream) noexcept {
  Kernel kernel = nullptr;
  switch (dtype) {
    case DType::f32: kernel = attention_simt_merge<float>; break;
    case DType::f16: kernel = attention_simt_merge<float16>; break;
    case DType::bf16: kernel = attention_simt_merge<bfloat16>; break;
    default: break;
  }
  const std::int64_t blocks = (params.all_rows + kSimtMergeRows - 1) / kSimtMergeRows;
  return launch("attention_simt_merge", kernel, blocks, 0, params, stream);
}

Status launch_attention_simt_weights(DType dtype, const SimtTile& tile, std::int64_t blocks,
                                     const AttentionSimtParams& params, machine::Stream stream) noexcept {
  Kernel kernel = nullptr;
  switch (dtype) {
    case DType::f32: kernel = weights_kernel<float>(tile); break;
    case DType::f16: kernel = weights_kernel<float16>(tile); break;
    case DType::bf16: kernel = weights_kernel<bfloat16>(tile); break;
    default: break;
  }
  return launch("attention_simt_weights", kernel, blocks, simt_shared_bytes(tile), params, stream);
}

}  // namespace sorot::inline v0::cuda
