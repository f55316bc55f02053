#pragma once

#include <cstdint>

#include "tests/support/attention_case.h"

namespace sorot::support {

/// Case `index` of the fuzzer's stream `seed`; it depends on nothing else.
///
/// Stratified: every property is a category of at most six values. The n-th case of a dtype takes the value at place
/// n of a sequence of random permutations, one sequence a category and dtype, so that 300 cases meet every value at
/// least 12 times in every dtype, in ever new combinations. Where values get in each other's way (a window needs
/// keys to exclude), the sizes or the alignment yield.
AttentionCase generate_attention_case(std::uint64_t seed, std::uint64_t index);

}  // namespace sorot::support
