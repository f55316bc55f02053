#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "cuda/emulator/control.h"
#include "tests/ops/devices.h"
#include "tests/support/attention_case.h"

/// A plan names one kernel, and others follow it: merges, weights. Here each instantiation of those runs, too.
namespace sorot::support {
namespace {

class AttentionKernels : public OnEveryDevice {
 protected:
  /// Judges a case on a kernel, and gives back all kernels that it took.
  std::set<std::string> kernels_of(const AttentionCase& c, const std::string& kernel) {
    std::set<std::string> kernels;
    if constexpr (kEmulated) {
      emulator::clear_launches();
      const CaseResult result = run_case(device_, PreparedCase(c), kernel);
      EXPECT_TRUE(result.passed()) << result.problem << "\n" << to_json(c);
      for (const emulator::LaunchRecord& launch : emulator::launches()) kernels.insert(launch.kernel);
    }
    return kernels;
  }
};
SOROT_ON_CUDA(AttentionKernels);

AttentionCase small_case(DType dtype, std::int64_t head_dim) {
  AttentionCase c;
  c.dtype = dtype;
  c.heads = 2;
  c.queries = 20;
  c.keys = 70;
  c.head_dim = c.value_dim = head_dim;
  c.lse = true;
  return c;
}

TEST_P(AttentionKernels, WeightsOfEveryTypeAndHeadDim) {
  if (!kEmulated) GTEST_SKIP() << "a GPU keeps no record of launches";
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t head_dim : {40, 64, 100, 128, 200, 256}) {
      for (const DType weights : {dtype, DType::f32}) {
        AttentionCase c = small_case(dtype, head_dim);
        c.weights = weights;
        EXPECT_TRUE(kernels_of(c, "attention_simt").contains("attention_simt_weights"))
            << name(dtype) << " D " << head_dim;
        if (dtype == DType::f32 || head_dim % 8 != 0) continue;
        for (const char* kernel : {"attention_sm80_plain", "attention_sm80_general"}) {
          EXPECT_TRUE(kernels_of(c, kernel).contains("attention_sm80_weights")) << name(dtype) << " D " << head_dim;
        }
      }
    }
  }
}

TEST_P(AttentionKernels, SplitsOfEveryType) {
  if (!kEmulated) GTEST_SKIP() << "a GPU keeps no record of launches";
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t queries : {1, 20}) {
      AttentionCase c = small_case(dtype, 64);
      c.queries = queries;
      c.keys = 700;
      EXPECT_TRUE(kernels_of(c, "attention_simt").contains("attention_simt_merge")) << name(dtype);
    }
  }
}

}  // namespace
}  // namespace sorot::support
