#pragma once

#include <string>
#include <vector>

#include "tests/support/attention_case.h"

/// Small problems that between them come to every line of the mutated kernels, at the edges of tiles where mistakes
/// show.
namespace mutants {

struct Problem {
  std::string what;
  std::string kernel;  ///< by name
  sorot::support::AttentionCase description;
};

/// For the kernels of a family, attention_simt or attention_sm80. Those that are cheap and notice much come first.
std::vector<Problem> problems_for(const std::string& family);

}  // namespace mutants
