#pragma once

#include <cstdint>
#include <vector>

/// Ways to lay a tensor out in memory, as users do and as kernels get wrong.
namespace sorot::support {

/// Which dimensions are next to each other in memory.
enum class Order : std::uint8_t {
  natural,      ///< row-major in the order of the shape: [B, H, S, D]
  heads_inner,  ///< dimensions 1 and 2 swapped: [B, S, H, D]
  transposed,   ///< the last two swapped: [B, H, D, S]
  packed,       ///< a slice of [B, S, slots, H, D] with other tensors in the other slots; rank 4 only
};

/// What else is unusual.
enum class Twist : std::uint8_t {
  none,
  negative,   ///< every stride negative: data points at the highest element
  zero,       ///< one dimension broadcast by stride 0; inputs only
  unaligned,  ///< data is one element off a 16-byte boundary
  padded,     ///< unused elements behind every row
  strided,    ///< every second element is unused: no stride is 1
};

struct Layout {
  Order order = Order::natural;
  Twist twist = Twist::none;
  std::int32_t zero_dim = 0;  ///< with Twist::zero: the dimension, or the next one (cyclically) of size > 1

  bool operator==(const Layout&) const = default;
};

/// Where the elements of a tensor lie, counted from the start of its buffer.
struct Placed {
  std::vector<std::int64_t> strides;
  std::int64_t first = 0;  ///< of logical [0, ..., 0]
  std::int64_t size = 0;   ///< elements the buffer needs, exactly
};

/// Slot and number of slots are for Order::packed.
Placed place(const std::vector<std::int64_t>& shape, const Layout& layout, std::int64_t slot = 0,
             std::int64_t slots = 3);

/// Every logical index of a shape as an offset under strides, in row-major order.
std::vector<std::int64_t> offsets_of(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides);

/// Whether the layout differs from the plain one for this shape: a negative stride needs a size above 1, and so on.
bool takes_effect(Order order, const std::vector<std::int64_t>& shape);
bool takes_effect(Twist twist, const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides);

}  // namespace sorot::support
