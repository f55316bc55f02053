#pragma once

#include <string>
#include <vector>

#include "tests/support/oracle.h"
#include "tests/support/plain.h"

/// The one tolerance policy: how far a result of attention may lie from the oracle's, head by head.
///
/// max and RMS error of a (b, h) <= 2 x those of plain attention + floor, where the floor is
///   f16, bf16   1 ulp(T) * max|v|, never above 2.5e-3 (f16) or 2e-2 (bf16) of max|v| altogether
///   f32         4 ulp(T) * max|v|, and max|s| * sqrt(D) * 2^-24 * max|v| on top
/// and a quarter of the ulp term for the RMS, which is judged from 64 elements up. f64 has no plain:
/// 1e-12 * (1 + max|s|) * max|v|. For weights max|v| is 1. Where plain is not finite only the cap holds.
/// lse, every type:  4e-6 * (1 + max|s| * sqrt(D) / 16) * max(1, |lse| / 8).
namespace sorot::support {

struct HeadTolerance {
  double max = 0;
  double rms = 0;
};

inline constexpr std::size_t kFewestForRms = 64;

/// What plain attention gets wrong in one head.
struct PlainError {
  double max = 0;
  double rms = 0;  ///< both may be NaN or infinite
};

/// The policy itself.
HeadTolerance head_tolerance(DType dtype, const PlainError& plain, double largest_score, double largest_value,
                             std::int64_t head_dim);
double lse_tolerance(double largest_score, std::int64_t head_dim, double lse);

/// Of every (b, h), and of every row for the lse.
struct AttentionTolerance {
  std::vector<HeadTolerance> out, weights;
  std::vector<double> lse;
};

/// `weights_dtype` is that of the weights written: one coarser than the problem's (f32 for f64) adds its rounding.
AttentionTolerance attention_tolerance(const DenseAttention& problem, const AttentionOracle& oracle,
                                       DType weights_dtype);

/// How a result compares: the worst element or head of one tensor.
struct Verdict {
  bool ok = true;
  double error = 0;  ///< of the element or head nearest to (or furthest beyond) its tolerance
  double tolerance = 0;
  std::string what;  ///< the first failure in words; empty if ok
};

/// Judges [heads, elements of a head] values head by head. `name` and `row` (elements of a row) serve the message.
Verdict judge_heads(const std::string& name, const std::vector<double>& actual, const Expectation& expected,
                    const std::vector<HeadTolerance>& tolerance, std::size_t row);

/// Judges values that have a tolerance each.
Verdict judge_each(const std::string& name, const std::vector<double>& actual, const Expectation& expected,
                   const std::vector<double>& tolerance);

}  // namespace sorot::support
