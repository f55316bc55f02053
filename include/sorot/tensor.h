#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "sorot/dtype.h"
#include "sorot/export.h"

namespace sorot {
inline namespace v0 {

inline constexpr int kMaxRank = 4;

/// A tensor somebody else owns: where it is, what its elements are, how it is laid out. Plain and trivially
/// copyable. Used as TensorView (may be written) and ConstTensorView (read only); the first converts to the second.
///
/// `data` points at the element with logical index [0, ..., 0]; strides count elements and may be zero (broadcast)
/// or negative (the tensor then reaches below `data`). A default-constructed view means "absent".
///
/// The operations below never fail loudly: one that cannot be done returns a view whose `invalid` says why, and
/// every operator refuses such a view with kInvalidArgument and that text.
template <class Void>
struct BasicTensorView {
  Void* data = nullptr;
  DType dtype = DType::none;
  std::int32_t rank = 0;
  std::int64_t shape[kMaxRank] = {};
  std::int64_t strides[kMaxRank] = {};
  const char* invalid = nullptr;  ///< static text, null for a usable view

  constexpr BasicTensorView() noexcept = default;

  /// Row-major view of `count` sizes. Rank 0 is a single element.
  SOROT_API BasicTensorView(Void* pointer, DType type, const std::int64_t* sizes, std::int32_t count) noexcept;

  /// TensorView -> ConstTensorView.
  template <class Other, class = std::enable_if_t<std::is_same_v<Other, void> && std::is_same_v<Void, const void>>>
  constexpr BasicTensorView(const BasicTensorView<Other>& other) noexcept
      : data(other.data), dtype(other.dtype), rank(other.rank), invalid(other.invalid) {
    for (int d = 0; d < kMaxRank; ++d) {
      shape[d] = other.shape[d];
      strides[d] = other.strides[d];
    }
  }

  /// Dimension d of the result is dimension order[d] of this view; order names each once.
  SOROT_API BasicTensorView permute(std::initializer_list<int> order) const noexcept;

  /// Indices begin <= i < end of one dimension, 0 <= begin <= end <= size.
  SOROT_API BasicTensorView slice(int dim, std::int64_t begin, std::int64_t end) const noexcept;

  /// Repeats a dimension of size 1 `size` times by stride 0.
  SOROT_API BasicTensorView expand(int dim, std::int64_t size) const noexcept;

  /// The same elements in another shape, where the strides allow it without a copy.
  SOROT_API BasicTensorView reshape(std::initializer_list<std::int64_t> new_shape) const noexcept;

  /// The same data and shape with these strides, one a dimension, in elements.
  SOROT_API BasicTensorView with_strides(std::initializer_list<std::int64_t> steps) const noexcept;
};

extern template struct BasicTensorView<void>;
extern template struct BasicTensorView<const void>;

using TensorView = BasicTensorView<void>;
using ConstTensorView = BasicTensorView<const void>;

namespace detail {

template <class T>
constexpr DType dtype_of() noexcept {
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, float16>) return DType::f16;
  if constexpr (std::is_same_v<T, bfloat16>) return DType::bf16;
  if constexpr (std::is_same_v<T, std::int64_t>) return DType::i64;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::i32;
  if constexpr (std::is_same_v<T, bool>) return DType::boolean;
  return DType::none;
}

template <class T>
using VoidLike = std::conditional_t<std::is_const_v<T>, const void, void>;

}  // namespace detail

/// Row-major view whose dtype is the pointer's: view(p, {B, S, H, D}). Read only if T is const.
template <class T, class = std::enable_if_t<!std::is_void_v<T>>>
inline BasicTensorView<detail::VoidLike<T>> view(T* data, std::initializer_list<std::int64_t> shape) noexcept {
  constexpr DType kType = detail::dtype_of<std::remove_const_t<T>>();
  static_assert(kType != DType::none, "no DType for this pointer: say view(pointer, DType::..., shape)");
  return {data, kType, shape.begin(), static_cast<std::int32_t>(shape.size())};
}

/// Row-major view of untyped memory.
inline TensorView view(void* data, DType dtype, std::initializer_list<std::int64_t> shape) noexcept {
  return {data, dtype, shape.begin(), static_cast<std::int32_t>(shape.size())};
}
inline ConstTensorView view(const void* data, DType dtype, std::initializer_list<std::int64_t> shape) noexcept {
  return {data, dtype, shape.begin(), static_cast<std::int32_t>(shape.size())};
}

}  // namespace v0
}  // namespace sorot
