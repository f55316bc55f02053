#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sorot/sorot.h"
#include "tests/support/device.h"

/// Small dense f32 problems for tests that name their numbers. Anything unusual is set on `args` by the test.
namespace sorot::support {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Sizes of a problem, and float tensors of them filled with small reproducible numbers.
struct AttentionProblemF32 {
  struct Sizes {
    std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, head_dim = 1, value_dim = 1;
  };

  explicit AttentionProblemF32(const Sizes& sizes);
  AttentionProblemF32(const AttentionProblemF32&) = delete;
  AttentionProblemF32& operator=(const AttentionProblemF32&) = delete;

  /// Plans, makes a workspace and runs; the Status of whichever failed.
  Status run(const Device& device);

  float& q(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t d);
  float& k(std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t d);
  float& v(std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t d);
  float out(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t d) const;
  float lse(std::int64_t b, std::int64_t h, std::int64_t i) const;
  float weight(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const;

  Sizes sizes;
  std::vector<float> q_data, k_data, v_data, out_data, lse_data, weights_data;
  AttentionArgs args;  ///< q, k, v, out, lse and weights are set
};

/// Runs args that lie in host memory: plan, workspace, call, outputs back on the host (see run_plan). On CUDA the
/// problem is then also given to the kernels for tensor cores, and kInternal if the oracle finds fault with one
/// (half_problem.h).
Status plan_and_run(const Device& device, const AttentionArgs& args);

/// Bitwise, so that -0 differs from 0 and NaN equals itself.
bool same_bits(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace sorot::support
