#pragma once

#include <cstddef>
#include <cstdint>

namespace sorot::inline v0::emulator {

/// The numbers of a device by which launches are refused and plans are made, from the CUDA C++ Programming Guide, table
/// "Technical Specifications per Compute Capability", and the data sheet of a common device of that kind.
struct Profile {
  int compute_capability;
  const char* name;
  std::int32_t multiprocessors;
  std::int32_t shared_bytes_per_block;
  std::int32_t shared_bytes_per_multiprocessor;
  std::int32_t threads_per_multiprocessor;
};

inline constexpr Profile kProfileTable[] = {
    {75, "emulated sm_75 (as a T4)", 40, 64 << 10, 64 << 10, 1024},
    {80, "emulated sm_80 (as an A100)", 108, 163 << 10, 164 << 10, 2048},
    {86, "emulated sm_86 (as an A10)", 72, 99 << 10, 100 << 10, 1536},
    {90, "emulated sm_90 (as an H100)", 132, 227 << 10, 228 << 10, 2048},
    {100, "emulated sm_100 (as a B200)", 148, 227 << 10, 228 << 10, 2048},
    {120, "emulated sm_120 (as an RTX 5090)", 170, 99 << 10, 100 << 10, 1536},
};

// The same for all of them.
inline constexpr unsigned kMostThreads = 1024;  ///< of a block
inline constexpr unsigned kMostBlockSize[] = {1024, 1024, 64};
inline constexpr unsigned kMostGridSize[] = {2147483647, 65535, 65535};

constexpr const Profile* find_profile(int compute_capability) {
  for (const Profile& profile : kProfileTable) {
    if (profile.compute_capability == compute_capability) return &profile;
  }
  return nullptr;
}

}  // namespace sorot::inline v0::emulator
