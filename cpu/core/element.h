#pragma once

#include <cstdint>
#include <cstring>

#include "sorot/tensor.h"

/// Reading and writing single elements of a view. For the front door and the reference, where clarity is all;
/// kernels have their own ways.
namespace sorot::inline v0::core {

inline std::uint64_t address_of(const void* pointer) noexcept { return reinterpret_cast<std::uintptr_t>(pointer); }

template <class Void>
Void* at_address(std::uint64_t address) noexcept {
  return reinterpret_cast<Void*>(static_cast<std::uintptr_t>(address));  // NOLINT(performance-no-int-to-ptr)
}

/// Elements between data and the element at those indices; one index a dimension.
template <class View, class... Index>
std::int64_t offset(const View& view, Index... index) noexcept {
  static_assert(sizeof...(Index) <= kMaxRank);
  std::int64_t sum = 0;
  int d = 0;
  ((sum += index * view.strides[d++]), ...);
  return sum;
}

/// The element as a double; its dtype is looked up at run time. A bool is 0 or 1, whatever its byte.
inline double load(const ConstTensorView& view, std::int64_t offset) noexcept {
  switch (view.dtype) {
    case DType::f64: return static_cast<const double*>(view.data)[offset];
    case DType::f32: return static_cast<double>(static_cast<const float*>(view.data)[offset]);
    case DType::f16: return static_cast<double>(static_cast<const float16*>(view.data)[offset]);
    case DType::bf16: return static_cast<double>(static_cast<const bfloat16*>(view.data)[offset]);
    case DType::i64: return static_cast<double>(static_cast<const std::int64_t*>(view.data)[offset]);
    case DType::i32: return static_cast<double>(static_cast<const std::int32_t*>(view.data)[offset]);
    case DType::boolean: return static_cast<const std::uint8_t*>(view.data)[offset] != 0 ? 1.0 : 0.0;
    case DType::none: break;
  }
  return 0.0;
}

/// Writes a floating-point element, rounded once to nearest even.
inline void store(const TensorView& view, std::int64_t offset, double value) noexcept {
  switch (view.dtype) {
    case DType::f64: static_cast<double*>(view.data)[offset] = value; break;
    case DType::f32: static_cast<float*>(view.data)[offset] = static_cast<float>(value); break;
    case DType::f16: static_cast<float16*>(view.data)[offset] = float16(value); break;
    case DType::bf16: static_cast<bfloat16*>(view.data)[offset] = bfloat16(value); break;
    case DType::i64:
    case DType::i32:
    case DType::boolean:
    case DType::none: break;
  }
}

}  // namespace sorot::inline v0::core
