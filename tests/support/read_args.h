#pragma once

#include <vector>

#include "sorot/attention.h"
#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

/// From the strided tensors of a call to the dense arrays of the oracle. Host memory only.
namespace sorot::support {

/// Elements in row-major order of the logical index, whatever the strides.
std::vector<double> read_view(const ConstTensorView& view);

/// The problem that args state; mask and bias are broadcast.
DenseAttention read_args(const AttentionArgs& args);

/// The worst verdict over out, lse and weights, those that are present.
Verdict judge_outputs(const AttentionArgs& args, const DenseAttention& problem, const AttentionOracle& oracle,
                      const AttentionTolerance& tolerance);

/// All of it: reads the args of a finished call, asks the oracle, judges.
Verdict judge_call(const AttentionArgs& args);

}  // namespace sorot::support
