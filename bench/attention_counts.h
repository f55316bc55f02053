#pragma once

#include <string>

#include "bench/attention_case.h"

/// What the kernels of attention do on an emulated GPU, as its counters say. Only in builds that have the emulator.
namespace sorot::bench {

struct AttentionCounts {
  double mma = 0;                ///< mma.sync of a warp
  double shared_wavefronts = 0;  ///< of all loads, stores, ldmatrix, and of copies that land
  double asked_bytes = 0;        ///< of global memory, in whole 32-byte sectors, by all blocks together
  double blocks = 0;             ///< of the kernel that the plan names
};

/// Pure, for a GPU of that compute capability.
AttentionPlan plan_on_gpu(const AttentionCase& c, int compute_capability);

/// Runs a case and counts.
AttentionCounts count(const AttentionCase& c, int compute_capability);

/// The same numbers, but of smaller problems that the plan serves alike, where there are such: one kv head instead of
/// all; short sequences, from which numbers go on as they must, in proportion to tiles of keys, or, where queries and
/// keys are alike, as a polynomial of degree 2 of their length.
AttentionCounts count_by_parts(const AttentionCase& c, int compute_capability);

}  // namespace sorot::bench
