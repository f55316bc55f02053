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

template <class T, std::size_t... kPlain, std::size_t... kGeneral>
Sm80Kernel sm80_kernel(int tile, bool general, std::index_sequence<kPlain...>, std::index_sequence<kGeneral...>) {
  static constexpr Sm80Kernel kPlainKernels[] = {attention_sm80<T, kPlain, false>...};
  static constexpr Sm80Kernel kGeneralKernels[] = {
      attention_sm80<T, static_cast<std::size_t>(kSm80GeneralTiles[kGeneral]), true>...};
  if (!general) return kPlainKernels[tile];
  for (int n = 0; n < kSm80GeneralTileCount; ++n) {
    if (kSm80GeneralTiles[n] == tile) return kGeneralKernels[n];
  }
  return nullptr;
}

template <class T>
Status AttentionSm80Launches<T>::attend(int tile, bool general, std::int64_t blocks, const AttentionSm80Params& params,
                                        machine::Stream stream) noexcept {
  const Sm80Kernel kernel = sm80_kernel<T>(tile, general, std::make_index_sequence<kSm80TileCount>(),
                                           std::make_index_sequence<kSm80GeneralTileCount>());
  return launch_sm80(general ? "attention_sm80_general" : "attention_sm80_plain", kernel, blocks,
                     kSm80Tiles[tile].threads(), sm80_shared_bytes(kSm80Tiles[tile], general), params, stream);
}

template <class T>
Status AttentionSm80Launches<T>::write_weights(int tile, std::int64_t blocks, const AttentionSm80Params& params,
                                               machine::Stream stream) noexcept {
  static constexpr Sm80Kernel kKernels[] = {attention_sm80_weights<T, 0>, attention_sm80_weights<T, 1>,
                                            attention_sm80_weights<T, 2>};
  static_assert(sizeof kKernels / sizeof kKernels[0] == kSm80WeightsTileCount);
  const Sm80Tile& shape = kSm80WeightsTiles[tile];
  return launch_sm80("attention_sm80_weights", kKernels[tile], blocks, shape.threads(), sm80_shared_bytes(shape, true),
                     params, stream);
}

}  // namespace sorot::inline v0::cuda
