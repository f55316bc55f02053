#include <cstddef>
#include <cstdint>

#include "cuda/attention/attention_simt.cuh"
#include "cuda/attention/attention_simt_merge.cuh"
#include "cuda/attention/attention_simt_weights.cuh"
#include "cuda/machine/runtime.h"

/// attention_simt out of the mutated copy: bf16, D up to 64. The program has these before the linker looks into the
/// library, which still gives it all other types.
namespace sorot::inline v0::cuda {
namespace {

Status launch(const char* name, void (*kernel)(AttentionSimtParams), std::int64_t blocks, std::size_t shared_bytes,
              const AttentionSimtParams& params, machine::Stream stream) {
  const machine::LaunchConfig config{
      name, {static_cast<unsigned>(blocks)}, {static_cast<unsigned>(kSimtThreads)}, shared_bytes, stream};
  return machine::launch(config, kernel, params);
}

Status missing() { return {StatusCode::kInternal, "the mutants have attention_simt of bf16 with D up to 64 only"}; }

}  // namespace

template <>
Status AttentionSimtLaunches<bfloat16>::attend(const SimtTile& tile, std::int64_t blocks,
                                               const AttentionSimtParams& params, machine::Stream stream) noexcept {
  if (tile.head_dim != 64) return missing();
  return launch("attention_simt",
                tile.few_rows ? attention_simt<bfloat16, 64, true> : attention_simt<bfloat16, 64, false>, blocks,
                simt_shared_bytes(tile), params, stream);
}

template <>
Status AttentionSimtLaunches<bfloat16>::merge(const AttentionSimtParams& params, machine::Stream stream) noexcept {
  const std::int64_t blocks = (params.all_rows + kSimtMergeRows - 1) / kSimtMergeRows;
  return launch("attention_simt_merge", attention_simt_merge<bfloat16>, blocks, 0, params, stream);
}

template <>
Status AttentionSimtLaunches<bfloat16>::write_weights(const SimtTile& tile, std::int64_t blocks,
                                                      const AttentionSimtParams& params,
                                                      machine::Stream stream) noexcept {
  if (tile.head_dim != 64) return missing();
  return launch("attention_simt_weights", attention_simt_weights<bfloat16, 64>, blocks, simt_shared_bytes(tile), params,
                stream);
}

}  // namespace sorot::inline v0::cuda
