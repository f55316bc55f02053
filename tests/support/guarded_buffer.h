#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sorot/tensor.h"
#include "tests/support/layout.h"

/// Memory that notices what should not happen to it.
namespace sorot::support {

/// Bytes at a 256-byte boundary between two guards. Guards must keep their bytes; AddressSanitizer, where it is on,
/// reports any access to them at once.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(std::size_t size);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  void fill(std::byte value);
  bool guards_intact() const;

 private:
  void poison_guards(bool on) const;

  std::unique_ptr<std::byte[]> memory_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A tensor in a guarded buffer. Bytes between its elements are NaN in every floating type until somebody writes.
class StridedTensor {
 public:
  /// In a buffer of its own, of exactly the size the layout needs.
  StridedTensor(std::string name, DType dtype, std::vector<std::int64_t> shape, const Layout& layout,
                std::int64_t slot = 0);

  /// In somebody else's buffer.
  StridedTensor(std::string name, DType dtype, std::vector<std::int64_t> shape, Placed placed,
                std::shared_ptr<GuardedBuffer> buffer);

  const std::string& name() const { return name_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  const std::vector<std::int64_t>& strides() const { return placed_.strides; }
  std::size_t size() const { return offsets_.size(); }  ///< logical elements
  TensorView view() const;

  /// Elements by row-major logical index.
  double get(std::size_t index) const;
  void set(std::size_t index, double value);
  std::vector<double> values() const;
  const std::byte* address(std::size_t index) const { return at(index); }

  GuardedBuffer& buffer() { return *buffer_; }
  const GuardedBuffer& buffer() const { return *buffer_; }

  /// Whether all bytes that belong to no element still are `value`, and the guards are intact.
  bool gaps_hold(std::byte value) const;

 private:
  std::byte* at(std::size_t index) const;

  std::string name_;
  DType dtype_;
  std::vector<std::int64_t> shape_;
  Placed placed_;
  std::vector<std::int64_t> offsets_;
  std::shared_ptr<GuardedBuffer> buffer_;
};

/// NaN in every floating type.
inline constexpr std::byte kNaNFill{0xFF};

}  // namespace sorot::support
