#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "cuda/attention/attention_sm80.cuh"
#include "cuda/attention/attention_sm80.h"
#include "cuda/attention/attention_sm80_weights.cuh"
#include "cuda/machine/runtime.h"

/// Every instantiation of attention_sm80 and attention_sm80_weights for one element type.
namespace sorot::inline v0::cuda {

using Sm80Kernel = void (*)(AttentionSm80Params);

inline Status launch_sm80(const char* name, Sm80Kernel kernel, std::int64_t blocks, int threads,
                          std::size_t shared_bytes, const AttentionSm80Params& params, machine::Stream stream) {
  if (kernel == nullptr) return {StatusCode::kInternal, "attention_sm80 was planned for a tile that it lacks"};
  const machine::LaunchConfig config{
      name, {static_cast<unsigned>(blocks)}, {static_cast<unsigned>(threads)}, shared_bytes, stream};
  return machine::launch(config, kernel, params);
}

template <class T, std::size_t... kIndex>
Sm80Kernel sm80_kernel(int tile, bool general, std::index_sequence<kIndex...>) {
  static constexpr Sm80Kernel kPlain[] = {attention_sm80<T, kIndex, false>...};
  static constexpr Sm80Kernel kGeneral[] = {attention_sm80<T, kIndex, true>...};
  return tile < 0 || tile >= kSm80TileCount ? nullptr : general ? kGeneral[tile] : kPlain[tile];
}

template <class T>
Status AttentionSm80Launches<T>::attend(int tile, bool general, std::int64_t blocks, const AttentionSm80Params& params,
                                        machine::Stream stream) noexcept {
  const Sm80Kernel kernel = sm80_kernel<T>(tile, general, std::make_index_sequence<kSm80TileCount>());
  return launch_sm80(general ? "attention_sm80_general" : "attention_sm80_plain", kernel, blocks,
                     kSm80Tiles[tile].threads(), sm80_shared_bytes(kSm80Tiles[tile], general), params, stream);
}

template <class T>
Status AttentionSm80Launches<T>::write_weights(int tile, std::int64_t blocks, const AttentionSm80Params& params,
                                               machine::Stream stream) noexcept {
  return {};
}

}  // namespace sorot::inline v0::cuda
