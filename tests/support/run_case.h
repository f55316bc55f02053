#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sorot/attention.h"
#include "tests/support/attention_case.h"
#include "tests/support/attention_tensors.h"
#include "tests/support/device.h"
#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

namespace sorot::support {

/// Names of the kernels that a device has for an operator, as this build reports them.
std::vector<std::string> kernel_names(const std::string& device, const std::string& op);

/// A case with its tensors in memory and the oracle's word on it. Costly, and the same for every kernel.
struct PreparedCase {
  explicit PreparedCase(const AttentionCase& c);

  AttentionCase description;
  AttentionTensors tensors;
  DenseAttention problem;
  AttentionOracle oracle;
  AttentionTolerance tolerance;
  std::vector<std::size_t> features;  ///< indices into attention_features()
};

/// How a kernel did on a case.
struct CaseResult {
  bool served = true;  ///< false: the kernel does not serve such a problem, and `problem` says why
  std::string kernel, variant;
  std::string problem;  ///< what is wrong, in words; empty if it passed
  bool judged = false;  ///< whether results were compared with the oracle's, after all else had passed
  double error = 0;     ///< of the element or head nearest to its tolerance, or furthest beyond it, if judged
  double tolerance = 0;

  bool passed() const { return served && problem.empty(); }
};

/// Seams for tests of the checker itself: break a call's args, its results, or what the device does in it.
struct Sabotage {
  std::function<void(AttentionArgs&)> args = {};
  std::function<void(const AttentionTensors&)> results = {};
  std::function<Status(const Device&, const AttentionArgs&)> work = {};  ///< behind every call, on the device's tensors
};

/// Runs a kernel (by name; empty: the plan's choice) and judges everything it may and may not do: results against the
/// oracle; two runs and more, over different bytes in outputs and workspace and under every schedule of the device,
/// equal bit for bit; out the same without lse and weights; inputs, gaps between elements and memory around every
/// tensor untouched. Whatever is wrong on the emulator, the last call is repeated and watched for races.
CaseResult run_case(const Device& device, const PreparedCase& prepared, const std::string& kernel = "",
                    const Sabotage& sabotage = {});

/// The case with a mistake in its args (see invalid_args.h): empty if planning and running both answer
/// kInvalidArgument and write nothing, else what is wrong.
std::string run_invalid(const Device& device, const AttentionCase& c, std::size_t mistake);

}  // namespace sorot::support
