#pragma once

#include <string>
#include <vector>

#include "tests/support/attention_case.h"
#include "tests/support/attention_tensors.h"
#include "tests/support/oracle.h"

namespace sorot::support {

/// Names of all features of attention that coverage counts: the rows of the contract, layouts, placements, sizes.
const std::vector<std::string>& attention_features();

/// Indices into attention_features() of those that take effect in a case: a causal mask that hides a key, a NaN in a
/// masked key of a row whose result is a number. What a case merely asks for does not count.
std::vector<std::size_t> features_of(const AttentionCase& c, const AttentionTensors& tensors,
                                     const DenseAttention& problem, const AttentionOracle& oracle);

}  // namespace sorot::support
