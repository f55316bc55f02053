#pragma once

#include <cstddef>

/// What the plans of all operators have in common.
namespace sorot {
inline namespace v0 {

/// Wishes for a plan.
struct PlanHint {
  const char* kernel = nullptr;  ///< take this kernel; kUnsupported if it cannot serve. Null: the fastest that can
};

/// Room for what explain writes, with its terminating zero.
inline constexpr std::size_t kExplanationBytes = 512;

/// A plan in words. A C string inside the object, so nothing allocates and nothing dangles.
struct Explanation {
  char text[kExplanationBytes];
  const char* c_str() const noexcept { return text; }
};

}  // namespace v0
}  // namespace sorot
