#include "sorot/tensor.h"

#include "cpu/core/element.h"

namespace sorot::inline v0 {
namespace {

constexpr char kBadRank[] = "a view has at most 4 dimensions";

/// False for a view that no operation can read: one that is invalid already, or whose rank was set by hand.
template <class Void>
bool usable(const BasicTensorView<Void>& view) {
  return view.invalid == nullptr && view.rank >= 0 && view.rank <= kMaxRank;
}

/// What is invalid already keeps its first reason.
template <class View>
View refuse(View view, const char* why) {
  if (view.invalid == nullptr) view.invalid = why;
  return view;
}

/// Moves the data pointer by whole elements. Wraps instead of overflowing: an extent that cannot exist is found by
/// the operator's own checks. A null pointer (legal only without elements) stays null.
template <class Void>
void advance(BasicTensorView<Void>& view, std::int64_t index, std::int64_t stride) {
  if (view.data == nullptr) return;
  const std::uint64_t bytes =
      static_cast<std::uint64_t>(index) * static_cast<std::uint64_t>(stride) * size_of(view.dtype);
  view.data = core::at_address<Void>(core::address_of(view.data) + bytes);
}

template <class Void>
bool empty(const BasicTensorView<Void>& view) {
  for (int d = 0; d < view.rank; ++d) {
    if (view.shape[d] == 0) return true;
  }
  return false;
}

/// Strides for `to` over the elements of `from` (both without elements of size 0), or false if they need a copy.
/// Walks both shapes from the right in groups of dimensions with equal products; inside a group the old dimensions
/// must be contiguous relative to each other.
template <class Void>
bool reshape_strides(const BasicTensorView<Void>& from, BasicTensorView<Void>& to) {
  int old_dim = from.rank - 1;
  int new_dim = to.rank - 1;
  while (new_dim >= 0 || old_dim >= 0) {
    while (old_dim >= 0 && from.shape[old_dim] == 1) --old_dim;
    if (old_dim < 0) {  // only ones are left
      for (; new_dim >= 0; --new_dim) to.strides[new_dim] = 1;
      return true;
    }
    const std::int64_t stride = from.strides[old_dim];
    std::int64_t old_count = from.shape[old_dim];
    std::int64_t new_count = 1;
    for (;;) {
      if (new_count < old_count) {
        if (new_dim < 0) return false;
        if (__builtin_mul_overflow(stride, new_count, &to.strides[new_dim])) return false;
        new_count *= to.shape[new_dim--];
      } else if (old_count < new_count) {
        int outer = old_dim - 1;
        while (outer >= 0 && from.shape[outer] == 1) --outer;
        std::int64_t contiguous;
        if (__builtin_mul_overflow(stride, old_count, &contiguous)) return false;
        if (outer < 0 || from.strides[outer] != contiguous) return false;
        old_count *= from.shape[outer];
        old_dim = outer;
      } else {
        --old_dim;
        break;
      }
    }
  }
  return true;
}

}  // namespace

template <class Void>
BasicTensorView<Void>::BasicTensorView(Void* pointer, DType type, const std::int64_t* sizes,
                                       std::int32_t count) noexcept
    : data(pointer), dtype(type) {
  if (count < 0 || count > kMaxRank) {
    invalid = kBadRank;
    return;
  }
  rank = count;
  std::uint64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    shape[d] = sizes[d];
    strides[d] = static_cast<std::int64_t>(stride);
    if (sizes[d] > 1) stride *= static_cast<std::uint64_t>(sizes[d]);
  }
}

template <class Void>
BasicTensorView<Void> BasicTensorView<Void>::permute(std::initializer_list<int> order) const noexcept {
  if (!usable(*this)) return refuse(*this, kBadRank);
  if (static_cast<std::int32_t>(order.size()) != rank) return refuse(*this, "permute: order has another rank");
  BasicTensorView result = *this;
  unsigned seen = 0;
  int d = 0;
  for (const int from : order) {
    if (from < 0 || from >= rank || (seen >> from & 1) != 0) {
      return refuse(*this, "permute: order does not name each dimension once");
    }
    seen |= 1U << from;
    result.shape[d] = shape[from];
    result.strides[d] = strides[from];
    ++d;
  }
  return result;
}

template <class Void>
BasicTensorView<Void> BasicTensorView<Void>::slice(int dim, std::int64_t begin, std::int64_t end) const noexcept {
  if (!usable(*this)) return refuse(*this, kBadRank);
  if (dim < 0 || dim >= rank) return refuse(*this, "slice: no such dimension");
  if (begin < 0 || end < begin || end > shape[dim]) return refuse(*this, "slice: not 0 <= begin <= end <= size");
  BasicTensorView result = *this;
  result.shape[dim] = end - begin;
  advance(result, begin, strides[dim]);
  return result;
}

template <class Void>
BasicTensorView<Void> BasicTensorView<Void>::expand(int dim, std::int64_t size) const noexcept {
  if (!usable(*this)) return refuse(*this, kBadRank);
  if (dim < 0 || dim >= rank) return refuse(*this, "expand: no such dimension");
  if (shape[dim] != 1) return refuse(*this, "expand: the dimension's size is not 1");
  if (size < 0) return refuse(*this, "expand: negative size");
  BasicTensorView result = *this;
  result.shape[dim] = size;
  result.strides[dim] = 0;
  return result;
}

template <class Void>
BasicTensorView<Void> BasicTensorView<Void>::reshape(std::initializer_list<std::int64_t> new_shape) const noexcept {
  if (!usable(*this)) return refuse(*this, kBadRank);
  const auto new_rank = static_cast<std::int32_t>(new_shape.size());
  BasicTensorView result(data, dtype, new_shape.begin(), new_rank);  // row-major, right where nothing is to be laid out
  if (result.invalid != nullptr) return refuse(*this, "reshape: the new rank is not in 0..4");

  std::int64_t old_count = 1;
  std::int64_t new_count = 1;
  bool overflow = false;
  for (int d = 0; d < rank; ++d) overflow |= __builtin_mul_overflow(old_count, shape[d], &old_count);
  for (int d = 0; d < new_rank; ++d) {
    if (result.shape[d] < 0) return refuse(*this, "reshape: negative size");
    overflow |= __builtin_mul_overflow(new_count, result.shape[d], &new_count);
  }
  if (empty(*this) && empty(result)) return result;
  if (overflow || old_count != new_count) return refuse(*this, "reshape: another number of elements");
  if (!reshape_strides(*this, result)) return refuse(*this, "reshape: these strides need a copy");
  return result;
}

template <class Void>
BasicTensorView<Void> BasicTensorView<Void>::with_strides(std::initializer_list<std::int64_t> steps) const noexcept {
  if (!usable(*this)) return refuse(*this, kBadRank);
  if (static_cast<std::int32_t>(steps.size()) != rank) return refuse(*this, "with_strides: not one stride a dimension");
  BasicTensorView result = *this;
  int d = 0;
  for (const std::int64_t step : steps) result.strides[d++] = step;
  return result;
}

template struct BasicTensorView<void>;
template struct BasicTensorView<const void>;

}  // namespace sorot::inline v0
