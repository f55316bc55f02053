#include "cpu/core/check.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

#include "cpu/core/element.h"

namespace sorot::inline v0::core {
namespace {

/// Lowest and highest element offset a view with elements reaches, in bytes from data. False on overflow.
bool reach(const ConstTensorView& view, std::int64_t& lowest, std::int64_t& highest) {
  lowest = 0;
  highest = 0;
  for (int d = 0; d < view.rank; ++d) {
    std::int64_t last;
    if (__builtin_mul_overflow(view.shape[d] - 1, view.strides[d], &last)) return false;
    std::int64_t& side = last < 0 ? lowest : highest;
    if (__builtin_add_overflow(side, last, &side)) return false;
  }
  const auto bytes = static_cast<std::int64_t>(size_of(view.dtype));
  return !__builtin_mul_overflow(lowest, bytes, &lowest) && !__builtin_add_overflow(highest, 1, &highest) &&
         !__builtin_mul_overflow(highest, bytes, &highest);
}

/// The bytes a view with elements touches. False if they are not inside the address space.
bool address_range(const ConstTensorView& view, std::uint64_t& lowest, std::uint64_t& end) {
  std::int64_t below;
  std::int64_t above;
  if (!reach(view, below, above)) return false;
  const std::uint64_t address = address_of(view.data);
  lowest = address + static_cast<std::uint64_t>(below);  // below <= 0: wraps down
  end = address + static_cast<std::uint64_t>(above);
  return lowest <= address && end > address;
}

}  // namespace

bool absent(const ConstTensorView& view) noexcept {
  bool zero = view.data == nullptr && view.dtype == DType::none && view.rank == 0 && view.invalid == nullptr;
  for (int d = 0; d < kMaxRank; ++d) zero = zero && view.shape[d] == 0 && view.strides[d] == 0;
  return zero;
}

bool has_no_elements(const ConstTensorView& view) noexcept {
  return std::any_of(view.shape, view.shape + view.rank, [](std::int64_t size) { return size == 0; });
}

ShapeText::ShapeText(const std::int64_t* sizes, int rank) noexcept : text{'['} {
  std::size_t used = 1;
  for (int d = 0; d < rank; ++d) {
    const int n = std::snprintf(text + used, sizeof text - used, "%s%" PRId64, d == 0 ? "" : ", ", sizes[d]);
    used = std::min(used + static_cast<std::size_t>(n), sizeof text - 2);
  }
  text[used] = ']';
  text[used + 1] = '\0';
}

Status make_status(StatusCode code, const char* format, ...) noexcept {
  char message[sizeof(Status)];
  va_list values;
  va_start(values, format);
  std::vsnprintf(message, sizeof message, format, values);
  va_end(values);
  return {code, message};
}

void Check::require(bool condition, const char* format, ...) noexcept {
  if (condition || !ok()) return;
  char message[sizeof(Status)];
  va_list values;
  va_start(values, format);
  std::vsnprintf(message, sizeof message, format, values);
  va_end(values);
  status_ = Status(StatusCode::kInvalidArgument, message);
}

void Check::well_formed(const char* name, const ConstTensorView& view) noexcept {
  require(!absent(view), "%s is missing", name);
  require(view.invalid == nullptr, "%s is not a usable view: %s", name, view.invalid);
  require(size_of(view.dtype) != 0, "%s has dtype %s (%d), expected one of f64, f32, f16, bf16, i64, i32, bool", name,
          sorot::name(view.dtype), static_cast<int>(view.dtype));
  require(view.rank >= 0 && view.rank <= kMaxRank, "%s has rank %d, expected 0..%d", name, view.rank, kMaxRank);
  if (!ok()) return;
  if (std::any_of(view.shape, view.shape + view.rank, [](std::int64_t size) { return size < 0; })) {
    return require(false, "%s has shape %s, expected sizes >= 0", name, ShapeText(view).text);
  }
  if (has_no_elements(view)) return;

  if (view.data == nullptr) return require(false, "%s has shape %s but null data", name, ShapeText(view).text);
  require(address_of(view.data) % size_of(view.dtype) == 0, "%s has data at %p, expected a multiple of %zu bytes (%s)",
          name, view.data, size_of(view.dtype), sorot::name(view.dtype));
  std::uint64_t lowest;
  std::uint64_t end;
  if (!address_range(view, lowest, end)) {
    require(false, "%s has shape %s with strides %s, which reaches outside the address space", name,
            ShapeText(view).text, ShapeText(view.strides, view.rank).text);
  }
}

void Check::dtype_is(const char* name, const ConstTensorView& view, std::initializer_list<DType> accepted) noexcept {
  if (!ok() || std::find(accepted.begin(), accepted.end(), view.dtype) != accepted.end()) return;
  char expected[64] = "";
  std::size_t used = 0;
  for (const DType* dtype = accepted.begin(); dtype != accepted.end(); ++dtype) {
    if (std::find(accepted.begin(), dtype, *dtype) != dtype) continue;  // "f32 or f32" where two types coincide
    const int n =
        std::snprintf(expected + used, sizeof expected - used, "%s%s", used == 0 ? "" : " or ", sorot::name(*dtype));
    used = std::min(used + static_cast<std::size_t>(n), sizeof expected - 1);
  }
  require(false, "%s has dtype %s, expected %s", name, sorot::name(view.dtype), expected);
}

void Check::shape_is(const char* name, const ConstTensorView& view, std::initializer_list<std::int64_t> shape,
                     const char* meaning) noexcept {
  if (!ok()) return;
  const bool equal =
      static_cast<std::size_t>(view.rank) == shape.size() && std::equal(shape.begin(), shape.end(), view.shape);
  if (equal) return;
  require(false, "%s has shape %s, expected %s = %s", name, ShapeText(view).text, meaning, ShapeText(shape).text);
}

void Check::broadcasts_to(const char* name, const ConstTensorView& view, std::initializer_list<std::int64_t> shape,
                          const char* meaning) noexcept {
  if (!ok()) return;
  const int missing = static_cast<int>(shape.size()) - view.rank;
  bool fits = missing >= 0;
  for (int d = 0; fits && d < view.rank; ++d) {
    fits = view.shape[d] == 1 || view.shape[d] == shape.begin()[missing + d];
  }
  if (fits) return;
  require(false, "%s has shape %s, expected one that broadcasts to %s = %s", name, ShapeText(view).text, meaning,
          ShapeText(shape).text);
}

void Check::no_self_overlap(const char* name, const ConstTensorView& view) noexcept {
  if (!ok() || has_no_elements(view)) return;
  struct Dim {
    std::uint64_t stride;
    std::int64_t size;
  };
  Dim dims[kMaxRank];
  int count = 0;
  for (int d = 0; d < view.rank; ++d) {
    if (view.shape[d] == 1) continue;
    const auto stride = static_cast<std::uint64_t>(view.strides[d]);
    const Dim dim{view.strides[d] < 0 ? 0 - stride : stride, view.shape[d]};
    int place = count++;
    for (; place > 0 && dims[place - 1].stride > dim.stride; --place) dims[place] = dims[place - 1];
    dims[place] = dim;
  }
  std::uint64_t span = 0;  // the furthest two elements of the dimensions so far are apart; well_formed bounds it
  for (int d = 0; d < count; ++d) {
    if (dims[d].stride <= span) {
      return require(false, "%s has shape %s with strides %s, in which elements overlap", name, ShapeText(view).text,
                     ShapeText(view.strides, view.rank).text);
    }
    span += dims[d].stride * static_cast<std::uint64_t>(dims[d].size - 1);
  }
}

ByteRange byte_range(const char* name, const ConstTensorView& view, bool written) noexcept {
  ByteRange range{name, 0, 0, written};
  if (absent(view) || has_no_elements(view) || !address_range(view, range.lowest, range.end)) {
    range.lowest = range.end = 0;
  }
  return range;
}

void require_disjoint(Check& check, const ByteRange* ranges, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) {
      const ByteRange& a = ranges[i];
      const ByteRange& b = ranges[j];
      const bool touch = std::max(a.lowest, b.lowest) < std::min(a.end, b.end);
      const bool swap = !a.written;
      check.require(!touch || !(a.written || b.written), "%s overlaps %s in memory; an output may share no byte range",
                    (swap ? b : a).name, (swap ? a : b).name);
    }
  }
}

ConstTensorView broadcast_to(const ConstTensorView& view, std::initializer_list<std::int64_t> shape) noexcept {
  ConstTensorView result(view.data, view.dtype, shape.begin(), static_cast<std::int32_t>(shape.size()));
  const int missing = result.rank - view.rank;
  for (int d = 0; d < result.rank; ++d) {
    const bool repeats = d < missing || view.shape[d - missing] == 1;
    result.strides[d] = repeats ? 0 : view.strides[d - missing];
  }
  return result;
}

Status check_workspace(const Workspace& workspace, std::size_t bytes_needed) noexcept {
  if (workspace.bytes < bytes_needed) {
    return make_status(StatusCode::kWorkspaceTooSmall, "workspace has %zu bytes, expected at least %zu",
                       workspace.bytes, bytes_needed);
  }
  Check check;
  check.require(workspace.data != nullptr || workspace.bytes == 0, "workspace has %zu bytes but null data",
                workspace.bytes);
  check.require(address_of(workspace.data) % kWorkspaceAlignment == 0,
                "workspace is at %p, expected a multiple of %zu bytes", workspace.data, kWorkspaceAlignment);
  const std::uint64_t address = address_of(workspace.data);
  check.require(address + workspace.bytes >= address, "workspace has %zu bytes at %p, outside the address space",
                workspace.bytes, workspace.data);
  return check.status();
}

}  // namespace sorot::inline v0::core
