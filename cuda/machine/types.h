#pragma once

#include <cstdint>

/// What the functions of both machines speak of.
namespace sorot::inline v0::machine {

inline constexpr unsigned kWarpSize = 32;
inline constexpr unsigned kFullWarp = 0xFFFF'FFFF;

struct Index3 {
  unsigned x, y, z;
};

/// Memory accesses of 8 and 16 bytes.
struct alignas(8) Float2 {
  float x, y;
};
struct alignas(16) Float4 {
  float x, y, z, w;
};
struct alignas(16) Word4 {
  std::uint32_t x, y, z, w;
};

}  // namespace sorot::inline v0::machine
