#include "tests/support/layout.h"

#include <algorithm>
#include <numeric>

namespace sorot::support {
namespace {

/// Dimensions from the outermost in memory to the innermost.
std::vector<std::size_t> memory_order(Order order, std::size_t rank) {
  std::vector<std::size_t> dims(rank);
  std::iota(dims.begin(), dims.end(), 0U);
  if (rank < 2) return dims;
  const bool swap_inner = order == Order::transposed || (order != Order::natural && rank < 4);
  if (swap_inner) {
    std::swap(dims[rank - 2], dims[rank - 1]);
  } else if (order == Order::heads_inner || order == Order::packed) {
    std::swap(dims[1], dims[2]);
  }
  return dims;
}

std::int64_t elements(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::size_t count_large(const std::vector<std::int64_t>& shape) {
  return static_cast<std::size_t>(
      std::count_if(shape.begin(), shape.end(), [](std::int64_t size) { return size > 1; }));
}

constexpr std::int64_t kPadding = 3;

}  // namespace

Placed place(const std::vector<std::int64_t>& shape, const Layout& layout, std::int64_t slot, std::int64_t slots) {
  const std::size_t rank = shape.size();
  Placed placed;
  placed.strides.assign(rank, 0);
  std::size_t zero_dim = rank;
  if (layout.twist == Twist::zero) {
    for (std::size_t n = 0; n < rank && zero_dim == rank; ++n) {
      const std::size_t d = (static_cast<std::size_t>(layout.zero_dim) + n) % rank;
      if (shape[d] > 1) zero_dim = d;
    }
  }

  const bool packed = layout.order == Order::packed && rank == 4;
  const std::vector<std::size_t> dims = memory_order(layout.order, rank);
  std::int64_t step = layout.twist == Twist::strided ? 2 : 1;
  for (std::size_t n = rank; n-- > 0;) {
    const std::size_t d = dims[n];
    if (d == zero_dim) continue;
    placed.strides[d] = step;
    step *= shape[d];
    if (n + 1 == rank && layout.twist == Twist::padded) step += kPadding;
    if (packed && d == 1) {
      placed.first = slot * step;
      step *= slots;
    }
  }
  if (layout.twist == Twist::unaligned) placed.first += 1;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t reach = std::max<std::int64_t>(shape[d] - 1, 0) * placed.strides[d];
    placed.size += reach;
    if (layout.twist != Twist::negative) continue;
    placed.first += reach;
    placed.strides[d] = -placed.strides[d];
  }
  if (layout.twist == Twist::negative) {
    placed.size = placed.first + 1;
  } else {
    placed.size += placed.first + 1;
  }
  if (elements(shape) == 0) placed.size = 0;
  return placed;
}

std::vector<std::int64_t> offsets_of(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) {
  std::vector<std::int64_t> offsets{0};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<std::int64_t> next;
    next.reserve(offsets.size() * static_cast<std::size_t>(shape[d]));
    for (const std::int64_t offset : offsets) {
      for (std::int64_t i = 0; i < shape[d]; ++i) next.push_back(offset + i * strides[d]);
    }
    offsets = std::move(next);
  }
  return offsets;
}

bool takes_effect(Order order, const std::vector<std::int64_t>& shape) {
  const std::size_t rank = shape.size();
  if (order == Order::natural || elements(shape) == 0) return elements(shape) > 0;
  if (order == Order::packed) return rank == 4;
  if (rank < 2) return false;
  if (order == Order::transposed || rank < 4) return shape[rank - 1] > 1 && shape[rank - 2] > 1;
  return shape[1] > 1 && shape[2] > 1;
}

bool takes_effect(Twist twist, const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) {
  if (elements(shape) == 0) return false;
  switch (twist) {
    case Twist::none:
    case Twist::unaligned: return true;
    case Twist::negative:
    case Twist::strided: return count_large(shape) > 0;
    case Twist::padded: return count_large(shape) > 1 || (count_large(shape) == 1 && shape.back() == 1);
    case Twist::zero:
      for (std::size_t d = 0; d < shape.size(); ++d) {
        if (shape[d] > 1 && strides[d] == 0) return true;
      }
      return false;
  }
  return false;
}

}  // namespace sorot::support
