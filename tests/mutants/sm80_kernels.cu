#include <cstdint>

#include "cuda/attention/attention_sm80.cuh"
#include "cuda/attention/attention_sm80_weights.cuh"
#include "cuda/machine/runtime.h"

/// attention_sm80 out of the mutated copy: bf16; plain for few rows, D up to 64 and up to 128 (where Q is not in
/// registers); general for D up to 64.
namespace sorot::inline v0::cuda {
namespace {

constexpr int kPlain64 = 7, kPlain128 = 8, kGeneral64 = 1;
static_assert(kSm80Tiles[kPlain64].head_dim == 64 && kSm80Tiles[kPlain128].head_dim == 128 &&
              kSm80Tiles[kGeneral64].head_dim == 64);

Status launch(const char* name, void (*kernel)(AttentionSm80Params), std::int64_t blocks, const Sm80Tile& tile,
              bool general, const AttentionSm80Params& params, machine::Stream stream) {
  const machine::LaunchConfig config{name,
                                     {static_cast<unsigned>(blocks)},
                                     {static_cast<unsigned>(tile.threads())},
                                     sm80_shared_bytes(tile, general),
                                     stream};
  return machine::launch(config, kernel, params);
}

}  // namespace

template <>
Status AttentionSm80Launches<bfloat16>::attend(int tile, bool general, std::int64_t blocks,
                                               const AttentionSm80Params& params, machine::Stream stream) noexcept {
  void (*kernel)(AttentionSm80Params) = nullptr;
  if (general && tile == kGeneral64) kernel = attention_sm80<bfloat16, kGeneral64, true>;
  if (!general && tile == kPlain64) kernel = attention_sm80<bfloat16, kPlain64, false>;
  if (!general && tile == kPlain128) kernel = attention_sm80<bfloat16, kPlain128, false>;
  if (kernel == nullptr) return {StatusCode::kInternal, "the mutants lack this tile of attention_sm80"};
  return launch(general ? "attention_sm80_general" : "attention_sm80_plain", kernel, blocks, kSm80Tiles[tile], general,
                params, stream);
}

template <>
Status AttentionSm80Launches<bfloat16>::write_weights(int tile, std::int64_t blocks, const AttentionSm80Params& params,
                                                      machine::Stream stream) noexcept {
  if (tile != 0) return {StatusCode::kInternal, "the mutants lack this tile of attention_sm80_weights"};
  return launch("attention_sm80_weights", attention_sm80_weights<bfloat16, 0>, blocks, kSm80WeightsTiles[0], true,
                params, stream);
}

}  // namespace sorot::inline v0::cuda
