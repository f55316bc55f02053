#pragma once

#include <type_traits>

/// Which mutant is awake. Compiled into every file of the mutated copy in front of all else.
namespace mutants {

inline int awake = 0;             ///< its number in the table; 0: none, the kernels are as they are
inline bool was_reached = false;  ///< a thread came to the mutated place

/// Constants of the compiler never change.
constexpr bool is(int number) {
  if (std::is_constant_evaluated()) return false;
  if (number != awake) return false;
  was_reached = true;
  return true;
}

}  // namespace mutants
