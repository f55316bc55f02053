#pragma once

#include <cstdint>

#include "cuda/machine/isa.cuh"

/// Softmax of a row that arrives in pieces (Milakov and Gimelshein 2018): the running maximum m and Z = sum exp(s - m).
///
/// The maximum ignores NaN, so a NaN or +inf score shows in Z alone: it makes Z NaN, and no later piece can mend it.
/// A row is empty iff m is -inf and Z is 0.
namespace sorot::inline v0::tile {

inline constexpr float kLog2E = 1.44269504088896340736F;
inline constexpr float kLn2 = 0.693147180559945309417F;
inline constexpr float kLargestFloat = 0x1.fffffep127F;

__device__ __forceinline__ float minus_infinity() { return machine::bits_as<float>(std::uint32_t{0xFF80'0000}); }
__device__ __forceinline__ float infinity() { return machine::bits_as<float>(std::uint32_t{0x7F80'0000}); }
__device__ __forceinline__ float not_a_number() { return machine::bits_as<float>(std::uint32_t{0x7FC0'0000}); }
__device__ __forceinline__ bool is_finite(float x) {
  return (machine::bits_as<std::uint32_t>(x) & 0x7F80'0000U) != 0x7F80'0000U;
}
__device__ __forceinline__ bool is_nan(float x) { return x != x; }

/// What to subtract from scores whose maximum is m: (-inf) - (-inf) would be NaN.
__device__ __forceinline__ float safe_maximum(float m) { return m == minus_infinity() ? 0.0F : m; }

/// exp(s - m). The difference comes first: s * log2 e loses all of it where |s| is large (a bias of -1e9).
__device__ __forceinline__ float exp_difference(float s, float m) { return machine::exp2_approx((s - m) * kLog2E); }

/// One row, or a part of it.
struct RowSum {
  float m, z;
  __device__ __forceinline__ bool empty() const { return m == minus_infinity() && z == 0.0F; }
};

/// The sink is one more score without a value. -inf is no sink.
__device__ __forceinline__ RowSum join_sink(const RowSum& sum, float sink) {
  const float m = machine::max(sum.m, sink);
  const float safe = safe_maximum(m);
  return {m, machine::fma(sum.z, exp_difference(sum.m, safe), exp_difference(sink, safe))};
}

/// Over the 8 lanes that share a row; every lane gets the result.
__device__ __forceinline__ float max_of_eight(float x) {
#pragma unroll
  for (unsigned lanes = 1; lanes < 8; lanes *= 2) x = machine::max(x, machine::shuffle_xor(x, lanes));
  return x;
}
__device__ __forceinline__ float sum_of_eight(float x) {
#pragma unroll
  for (unsigned lanes = 1; lanes < 8; lanes *= 2) x += machine::shuffle_xor(x, lanes);
  return x;
}

/// A weighted mean of finite numbers is finite, but the last rounding may not know: then it is the largest number.
__device__ __forceinline__ float mean_from(float product, float sum) {
  if (is_finite(product) || is_nan(product) || !is_finite(sum)) return product;
  return sum > 0 ? kLargestFloat : -kLargestFloat;
}

}  // namespace sorot::inline v0::tile
