#pragma once

#include <cstdint>

#include "cuda/machine/runtime.h"

/// Probes of the instructions that came with sm_80. They are compiled for such devices only.
namespace sorot::machine {

/// Blocks of one warp. A lane has kSm80Inputs words of `in`, and gives kSm80Outputs of `out`.
inline constexpr unsigned kSm80Inputs = 16;
inline constexpr unsigned kSm80Outputs = 4;

struct Sm80Params {
  const std::uint32_t* in = nullptr;
  std::uint32_t* out = nullptr;
};

enum class Sm80Probe : std::uint8_t {
  ldmatrix_x4,        ///< in[0..3]: the row that the lane names; out: its four registers
  ldmatrix_x4_trans,  ///< alike
  mma_f16,            ///< in: a[4], b0, b1, d[4]; out: d
  mma_bf16,           ///< alike
  cp_async,           ///< out: in[0..3] of the lane of that number with its lowest bits flipped
  cp_async_or_zero,   ///< the same, or zeros if in[4] of that lane is even
  cp_async_groups,    ///< in[0..3] of the first group plus in[4..7] of the second, each waited for by itself
};

Status launch_sm80_probe(Sm80Probe probe, unsigned blocks, const Sm80Params& params, Stream stream);

}  // namespace sorot::machine
