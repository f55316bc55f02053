#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "sorot/context.h"
#include "sorot/status.h"
#include "sorot/tensor.h"

/// What every operator's front door checks, said once. A check that fails is remembered; the checks after it do
/// nothing, so a front door reads as a plain list of requirements.
namespace sorot::inline v0::core {

/// True for a default-constructed view.
bool absent(const ConstTensorView& view) noexcept;

/// True if some size is 0.
bool has_no_elements(const ConstTensorView& view) noexcept;

/// "[2, 8, 64]" as a C string that lives until the end of the full expression.
struct ShapeText {
  char text[96];
  explicit ShapeText(const std::int64_t* sizes, int rank) noexcept;
  explicit ShapeText(const ConstTensorView& view) noexcept : ShapeText(view.shape, view.rank) {}
  explicit ShapeText(std::initializer_list<std::int64_t> sizes) noexcept
      : ShapeText(sizes.begin(), static_cast<int>(sizes.size())) {}
};

/// A Status with a printf-style message.
[[gnu::format(printf, 2, 3)]] Status make_status(StatusCode code, const char* format, ...) noexcept;

class Check {
 public:
  bool ok() const noexcept { return status_.ok(); }
  Status status() const noexcept { return status_; }

  /// The general case: kInvalidArgument with this message unless the condition holds. A ShapeText among the values is
  /// written before the condition is looked at, and costs more than all checks together: ask `if` first.
  [[gnu::format(printf, 3, 4)]] void require(bool condition, const char* format, ...) noexcept;

  /// A present tensor that makes sense by itself: a usable view, known dtype, sizes >= 0, an extent inside the address
  /// space, and, if it has elements, data that is not null and aligned to its element.
  void well_formed(const char* name, const ConstTensorView& view) noexcept;

  void dtype_is(const char* name, const ConstTensorView& view, std::initializer_list<DType> accepted) noexcept;

  /// Exactly this shape. `meaning` names the sizes: "[B, Hkv, Skv, D]".
  void shape_is(const char* name, const ConstTensorView& view, std::initializer_list<std::int64_t> shape,
                const char* meaning) noexcept;

  /// A shape that broadcasts to `shape`: right-aligned, each size equal or 1.
  void broadcasts_to(const char* name, const ConstTensorView& view, std::initializer_list<std::int64_t> shape,
                     const char* meaning) noexcept;

  /// No two indices of an output name the same element: with dimensions of size 1 left out and the rest sorted by
  /// |stride|, each stride exceeds the span of the smaller ones.
  void no_self_overlap(const char* name, const ConstTensorView& view) noexcept;

 private:
  Status status_;
};

/// The bytes lowest <= address < end that a tensor or workspace touches; empty if it has none.
struct ByteRange {
  const char* name = nullptr;
  std::uint64_t lowest = 0;
  std::uint64_t end = 0;
  bool written = false;
};
ByteRange byte_range(const char* name, const ConstTensorView& view, bool written) noexcept;

/// No range that is written may share a byte with another range.
void require_disjoint(Check& check, const ByteRange* ranges, std::size_t count) noexcept;

/// Broadcasts a view that Check::broadcasts_to accepted: full rank, stride 0 where it repeats.
ConstTensorView broadcast_to(const ConstTensorView& view, std::initializer_list<std::int64_t> shape) noexcept;

/// Workspaces are aligned to 256 bytes and sized in whole multiples, as std::aligned_alloc wants it.
inline constexpr std::size_t kWorkspaceAlignment = 256;
constexpr std::size_t round_up_workspace(std::size_t bytes) noexcept {
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

/// A workspace fit for `bytes_needed`: kWorkspaceTooSmall or kInvalidArgument otherwise.
Status check_workspace(const Workspace& workspace, std::size_t bytes_needed) noexcept;

}  // namespace sorot::inline v0::core
