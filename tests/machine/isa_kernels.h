#pragma once

#include <cstdint>

#include "cuda/machine/runtime.h"

/// One kernel for every function of cuda/machine/isa.cuh, built by whatever compiler builds kernels here.
namespace sorot::machine {

/// Blocks of 64 threads. Thread i of the grid has three words a[i], b[i], c[i] and gives one, out[i].
inline constexpr unsigned kProbeThreads = 64;

struct ProbeParams {
  const std::uint32_t* a = nullptr;
  const std::uint32_t* b = nullptr;
  const std::uint32_t* c = nullptr;
  std::uint32_t* out = nullptr;
};

enum class Probe : std::uint8_t {
  thread_and_block_index,
  block_and_grid_size,
  sync_block,
  sync_block_or,
  sync_warp,
  sync_named,
  spin_wait,
  fences,
  shuffle,
  shuffle_xor,
  shuffle_up,
  shuffle_down,
  shuffle_in_half_a_warp,
  ballot,
  any,
  all,
  memory_1,
  memory_2,
  memory_4,
  memory_8,
  memory_16,
  atomic_add_shared,
  atomic_add_global,
  atomic_add_float,
  atomic_max_shared,
  atomic_max_global,
  atomic_exchange_global,
  atomic_compare_exchange_global,
  bits_as,
  to_float_f32,
  to_float_f16,
  to_float_bf16,
  from_float_f32,
  from_float_f16,
  from_float_bf16,
  from_floats_f16,
  from_floats_bf16,
  keep,
  fma,
  max,
  log,
  tanh,
  reciprocal_approx,
  exp2_approx,
};

/// The last probe; their number is one more.
inline constexpr Probe kLastProbe = Probe::exp2_approx;

Status launch_probe(Probe probe, unsigned blocks, const ProbeParams& params, Stream stream);

}  // namespace sorot::machine
