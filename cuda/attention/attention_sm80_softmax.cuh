#pragma once

#include <cstdint>

#include "cuda/attention/attention_sm80.h"
#include "cuda/attention/attention_sm80_scores.cuh"
#include "cuda/machine/isa.cuh"
#include "cuda/tile/online_softmax.cuh"

/// Online softmax of attention_sm80: what a thread keeps of its rows, and when that is rescaled.
namespace sorot::inline v0::cuda {

/// References beyond it, in the exponent of 2, make a warp large: s * c - reference would lose more than 12 binary
/// digits of the difference.
inline constexpr float kSm80Large = 4096;

/// What an attempt is for; see attention_sm80_result.cuh.
enum class Sm80Attempt : int { fast, taint, scaled, clean };

/// What a thread gathers of its rows over the tiles so far. Large or not is a matter of the whole warp.
template <class Traits>
struct Sm80State {
  float acc[Traits::kM][Traits::kVN][4];  ///< sum exp(s - reference) v
  float z[Traits::kM][2];                 ///< sum exp(s - reference), of the thread's own keys
  float reference[Traits::kM][2];         ///< in the exponent of 2; 0 if large: then `limit` is the reference
  float limit[Traits::kM][2];             ///< scores beyond it move the reference; -inf: no key so far
  int large;                              ///< 1: yes

  __device__ __forceinline__ void clear(float first_limit) {
    large = 0;
#pragma unroll
    for (int m = 0; m < Traits::kM; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        z[m][h] = reference[m][h] = 0;
        limit[m][h] = first_limit;
      }
#pragma unroll
      for (int n = 0; n < Traits::kVN; ++n) acc[m][n][0] = acc[m][n][1] = acc[m][n][2] = acc[m][n][3] = 0;
    }
  }
};

/// Of every row, the thread's largest score; true if a row's is beyond its limit.
template <class Traits>
__device__ __forceinline__ bool find_tops(const Sm80Scores<Traits>& s, const Sm80State<Traits>& state,
                                          float (&top)[Traits::kM][2]) {
  bool grown = false;
#pragma unroll
  for (int m = 0; m < Traits::kM; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float x = machine::max(s[m][0][2 * h], s[m][0][2 * h + 1]);
#pragma unroll
      for (int n = 1; n < Traits::kN; ++n) x = machine::max(x, machine::max(s[m][n][2 * h], s[m][n][2 * h + 1]));
      top[m][h] = x;
      grown = grown || x > state.limit[m][h];
    }
  }
  return grown;
}

/// A row's maximum has grown too much: its sums move to the new reference. All lanes of the warp come here.
template <class Traits>
__device__ __forceinline__ void move_references(const AttentionSm80Params& p, const float (&top)[Traits::kM][2],
                                                Sm80State<Traits>& state) {
  const float scale = Traits::kGeneral ? 1.0F : p.scale;
  float highest[Traits::kM][2];
  bool becomes_large = false;
#pragma unroll
  for (int m = 0; m < Traits::kM; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float x = machine::max(top[m][h], machine::shuffle_xor(top[m][h], 1));
      x = machine::max(x, machine::shuffle_xor(x, 2));
      highest[m][h] = x;
      const float moved = x * p.log2_scale;
      if (x > state.limit[m][h]) becomes_large = becomes_large || !(moved <= kSm80Large && moved >= -kSm80Large);
    }
  }
  const bool was_large = state.large != 0;
  state.large = was_large || machine::any(becomes_large) ? 1 : 0;
#pragma unroll
  for (int m = 0; m < Traits::kM; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float& limit = state.limit[m][h];
      float& reference = state.reference[m][h];
      const bool first = limit == tile::minus_infinity();
      const bool grown = highest[m][h] > limit;
      float keep = 1;
      if (state.large == 0) {
        if (!grown) continue;
        const float moved = highest[m][h] * p.log2_scale;
        keep = machine::exp2_approx(reference - moved);
        reference = moved;
        limit = highest[m][h] + p.slack;
      } else {
        if (was_large && !grown) continue;
        // A row that has not grown, in a warp that becomes large: any reference near its own will do.
        const float now = grown ? highest[m][h] : limit - p.slack;
        if (!was_large) {
          keep = machine::exp2_approx(machine::fma(-(now * scale), tile::kLog2E, reference));
        } else {
          keep = machine::exp2_approx((limit * scale - now * scale) * tile::kLog2E);
        }
        reference = 0;
        limit = now;
      }
      if (first) keep = 0;
      state.z[m][h] *= keep;
#pragma unroll
      for (int n = 0; n < Traits::kVN; ++n) {
        state.acc[m][n][2 * h] *= keep;
        state.acc[m][n][2 * h + 1] *= keep;
      }
    }
  }
}

/// Scores of a warp whose references are large -> what to raise 2 to.
template <class Traits>
__device__ __forceinline__ void subtract_large(const AttentionSm80Params& p, const Sm80State<Traits>& state,
                                               Sm80Scores<Traits>& s) {
  const float scale = Traits::kGeneral ? 1.0F : p.scale;
#pragma unroll
  for (int m = 0; m < Traits::kM; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float reference = tile::safe_maximum(state.limit[m][h]) * scale;
#pragma unroll
      for (int n = 0; n < Traits::kN; ++n) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float& x = s[m][n][2 * h + c];
          x = (x * scale - reference) * tile::kLog2E;
        }
      }
    }
  }
}

}  // namespace sorot::inline v0::cuda
