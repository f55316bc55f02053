#pragma once

#include <vector>

#include "tests/support/oracle.h"

/// Attention as a plain implementation in the storage type computes it: the yardstick of the tolerance.
namespace sorot::support {

/// Results rounded to the storage type: [B, H, Sq, Dv] and [B, H, Sq, Skv]. Not finite where that arithmetic
/// overflows or a row is empty.
struct PlainAttention {
  std::vector<double> out, weights;
};

/// Scores and normalised weights are rounded to the storage type; sums are f32, in order of d and of j.
PlainAttention plain_attention(const DenseAttention& problem, const std::vector<char>& attended);

}  // namespace sorot::support
