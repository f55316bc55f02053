#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sorot/attention.h"
#include "tests/support/device.h"

namespace sorot::support {

/// An f32 problem once more in f16 or bf16, q, k, v and out dense and with columns of zeros up to a multiple of 8: what
/// kernels for tensor cores serve. Masks, bias, lengths, sinks and the rest are those of the original.
class HalfProblem {
 public:
  HalfProblem(const AttentionArgs& original, DType type);

  AttentionArgs args;  ///< with outputs of its own

 private:
  std::vector<std::byte> q_, k_, v_, out_, lse_, weights_;
};

/// Runs finished f32 args again in bf16 on the plain and in f16 on the general kernel for tensor cores, where they
/// serve them, and asks the oracle. What is wrong, in words; empty if nothing is, or where there is no such kernel.
std::string check_in_half(const Device& device, const AttentionArgs& args);

}  // namespace sorot::support
