#pragma once

#include <cstdint>

#include "cuda/machine/isa.cuh"

namespace sorot::inline v0::tile {

/// tanh without a branch, within 2^-21 of it, and for small x within a relative 2^-20: 1 - 2 / (1 + e^2x), or where
/// that would cancel, below 1/4, the series to x^9. Never beyond 1; NaN stays NaN.
__device__ __forceinline__ float tanh_by_exp(float x) {
  constexpr float kTwoLog2E = 2.88539008177792681472F;
  const float far = machine::fma(-2.0F, machine::reciprocal_approx(1.0F + machine::exp2_approx(x * kTwoLog2E)), 1.0F);
  const float square = x * x;
  float series = machine::fma(square, 62.0F / 2835, -17.0F / 315);
  series = machine::fma(square, series, 2.0F / 15);
  series = machine::fma(square, series, -1.0F / 3);
  const float near = machine::fma(x * square, series, x);
  return square < 0.0625F ? near : far;
}

}  // namespace sorot::inline v0::tile
