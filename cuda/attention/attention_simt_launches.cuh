#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/attention/attention_simt.cuh"
#include "cuda/attention/attention_simt.h"
#include "cuda/attention/attention_simt_merge.cuh"
#include "cuda/attention/attention_simt_weights.cuh"
#include "cuda/machine/runtime.h"

/// Every instantiation of attention_simt and its helpers for one element type, and the switches that choose one.
namespace sorot::inline v0::cuda {

using SimtKernel = void (*)(AttentionSimtParams);

inline Status launch_simt(const char* name, SimtKernel kernel, std::int64_t blocks, std::size_t shared_bytes,
                          const AttentionSimtParams& params, machine::Stream stream) {
  if (kernel == nullptr) return {StatusCode::kInternal, "attention_simt was planned for a tile that it lacks"};
  const machine::LaunchConfig config{
      name, {static_cast<unsigned>(blocks)}, {static_cast<unsigned>(kSimtThreads)}, shared_bytes, stream};
  return machine::launch(config, kernel, params);
}

template <class T>
Status AttentionSimtLaunches<T>::attend(const SimtTile& tile, std::int64_t blocks, const AttentionSimtParams& params,
                                        machine::Stream stream) noexcept {
  SimtKernel kernel = nullptr;
  switch (tile.head_dim) {
    case 64: kernel = tile.few_rows ? attention_simt<T, 64, true> : attention_simt<T, 64, false>; break;
    case 128: kernel = tile.few_rows ? attention_simt<T, 128, true> : attention_simt<T, 128, false>; break;
    case 256: kernel = tile.few_rows ? attention_simt<T, 256, true> : attention_simt<T, 256, false>; break;
    default: break;
  }
  return launch_simt("attention_simt", kernel, blocks, simt_shared_bytes(tile), params, stream);
}

template <class T>
Status AttentionSimtLaunches<T>::merge(const AttentionSimtParams& params, machine::Stream stream) noexcept {
  const std::int64_t blocks = (params.all_rows + kSimtMergeRows - 1) / kSimtMergeRows;
  return launch_simt("attention_simt_merge", attention_simt_merge<T>, blocks, 0, params, stream);
}

template <class T>
Status AttentionSimtLaunches<T>::write_weights(const SimtTile& tile, std::int64_t blocks,
                                               const AttentionSimtParams& params, machine::Stream stream) noexcept {
  SimtKernel kernel = nullptr;
  switch (tile.head_dim) {
    case 64: kernel = attention_simt_weights<T, 64>; break;
    case 128: kernel = attention_simt_weights<T, 128>; break;
    case 256: kernel = attention_simt_weights<T, 256>; break;
    default: break;
  }
  return launch_simt("attention_simt_weights", kernel, blocks, simt_shared_bytes(tile), params, stream);
}

}  // namespace sorot::inline v0::cuda
