#pragma once

#include <cstdint>

#include "cuda/machine/isa.cuh"

/// Storage types to and from f32, a vector at a time.
namespace sorot::inline v0::tile {

using machine::Float2;
using machine::Float4;
using machine::Word4;

/// Elements of T in 16 bytes.
template <class T>
inline constexpr int kVectorElements = 16 / static_cast<int>(sizeof(T));

/// Element `index` of 16 bytes of T.
template <class T>
__device__ __forceinline__ float element_of(const Word4& words, int index) {
  const std::uint32_t list[4] = {words.x, words.y, words.z, words.w};
  if constexpr (sizeof(T) == 4) {
    return machine::bits_as<float>(list[index]);
  } else {
    const std::uint32_t pair = list[index / 2];
    return machine::to_float(machine::bits_as<T>(static_cast<std::uint16_t>(index % 2 == 0 ? pair : pair >> 16)));
  }
}

/// Elements begin .. begin + 3 of 16 bytes of T.
template <class T>
__device__ __forceinline__ Float4 elements_of(const Word4& words, int begin) {
  return {element_of<T>(words, begin), element_of<T>(words, begin + 1), element_of<T>(words, begin + 2),
          element_of<T>(words, begin + 3)};
}

/// Writes 4 adjacent elements with one store of 16 bytes, or 8 if T has 2; `to` is aligned to that.
template <class T>
__device__ __forceinline__ void store_four(T* to, const float (&values)[4]) {
  if constexpr (sizeof(T) == 4) {
    machine::store_global(reinterpret_cast<Float4*>(to), Float4{values[0], values[1], values[2], values[3]});
  } else {
    const Float2 words{machine::bits_as<float>(machine::from_floats<T>(values[0], values[1])),
                       machine::bits_as<float>(machine::from_floats<T>(values[2], values[3]))};
    machine::store_global(reinterpret_cast<Float2*>(to), words);
  }
}

/// Writes up to 4 elements `stride` apart, one by one.
template <class T>
__device__ __forceinline__ void store_each(T* to, std::int64_t stride, int count, const float (&values)[4]) {
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    if (e < count) machine::store_global(to + e * stride, machine::from_float<T>(values[e]));
  }
}

}  // namespace sorot::inline v0::tile
