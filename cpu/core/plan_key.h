#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

#include "cpu/core/element.h"
#include "sorot/tensor.h"

/// What a plan remembers of its args: one 64-bit word a field. Small values are kept as they are; a view's geometry
/// is hashed (two different geometries agree by chance once in 2^64).
namespace sorot::inline v0::core {

inline std::uint64_t bits_of(double x) noexcept {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

/// An absent value gets the bits of a NaN, which no checked parameter can be.
inline std::uint64_t bits_of(const std::optional<double>& x) noexcept { return x ? bits_of(*x) : ~std::uint64_t{0}; }

inline std::uint64_t pack(std::int32_t high, std::int32_t low) noexcept {
  return std::uint64_t{static_cast<std::uint32_t>(high)} << 32 | static_cast<std::uint32_t>(low);
}

/// One round of a 64-bit mixer (the finaliser of MurmurHash3 by Appleby, in Stafford's variant 13).
inline std::uint64_t mix(std::uint64_t seed, std::uint64_t word) noexcept {
  std::uint64_t x = seed * 0x9E3779B97F4A7C15 + word + 0x632BE59BD9B4E019;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

inline std::uint64_t key_word(std::uint64_t value) noexcept { return value; }

inline std::uint64_t key_word(const ConstTensorView& view) noexcept {
  std::uint64_t hash = mix(static_cast<std::uint64_t>(view.dtype), static_cast<std::uint64_t>(view.rank));
  for (int d = 0; d < view.rank; ++d) {
    hash = mix(hash, static_cast<std::uint64_t>(view.shape[d]));
    hash = mix(hash, static_cast<std::uint64_t>(view.strides[d]));
  }
  return hash;
}

inline std::uint8_t key_alignment(std::uint64_t) noexcept { return 0; }

/// log2 of the data's alignment, up to 16 bytes: what vector loads may rely on. The most for a tensor without data.
inline std::uint8_t key_alignment(const ConstTensorView& view) noexcept {
  for (int d = 0; d < view.rank; ++d) {
    if (view.shape[d] == 0) return 4;
  }
  return static_cast<std::uint8_t>(__builtin_ctzll(address_of(view.data) | 16));
}

}  // namespace sorot::inline v0::core
