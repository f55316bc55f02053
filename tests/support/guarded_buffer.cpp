#include "tests/support/guarded_buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/support/storage.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace sorot::support {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kGuard = 256;
constexpr std::byte kGuardFill{0xA5};

}  // namespace

GuardedBuffer::GuardedBuffer(std::size_t size) : memory_(new std::byte[size + 2 * kGuard + kAlignment]), size_(size) {
  void* start = memory_.get() + kGuard;
  std::size_t space = size + kGuard + kAlignment;
  data_ = static_cast<std::byte*>(std::align(kAlignment, size + kGuard, start, space));
  std::memset(data_ - kGuard, static_cast<int>(kGuardFill), kGuard);
  std::memset(data_ + size, static_cast<int>(kGuardFill), kGuard);
  fill(kNaNFill);
  poison_guards(true);
}

GuardedBuffer::~GuardedBuffer() { poison_guards(false); }

void GuardedBuffer::fill(std::byte value) { std::memset(data_, static_cast<int>(value), size_); }

bool GuardedBuffer::guards_intact() const {
  poison_guards(false);
  const auto intact = [](const std::byte* guard) {
    return std::all_of(guard, guard + kGuard, [](std::byte b) { return b == kGuardFill; });
  };
  const bool result = intact(data_ - kGuard) && intact(data_ + size_);
  poison_guards(true);
  return result;
}

void GuardedBuffer::poison_guards([[maybe_unused]] bool on) const {
#if defined(__SANITIZE_ADDRESS__)
  for (const std::byte* guard : {data_ - kGuard, data_ + size_}) {
    if (on) {
      ASAN_POISON_MEMORY_REGION(guard, kGuard);
    } else {
      ASAN_UNPOISON_MEMORY_REGION(guard, kGuard);
    }
  }
#endif
}

StridedTensor::StridedTensor(std::string name, DType dtype, std::vector<std::int64_t> shape, const Layout& layout,
                             std::int64_t slot)
    : StridedTensor(std::move(name), dtype, shape, place(shape, layout, slot), nullptr) {}

StridedTensor::StridedTensor(std::string name, DType dtype, std::vector<std::int64_t> shape, Placed placed,
                             std::shared_ptr<GuardedBuffer> buffer)
    : name_(std::move(name)),
      dtype_(dtype),
      shape_(std::move(shape)),
      placed_(std::move(placed)),
      offsets_(offsets_of(shape_, placed_.strides)),
      buffer_(std::move(buffer)) {
  if (!buffer_) buffer_ = std::make_shared<GuardedBuffer>(static_cast<std::size_t>(placed_.size) * size_of(dtype_));
}

TensorView StridedTensor::view() const {
  TensorView view(buffer_->data(), dtype_, shape_.data(), static_cast<std::int32_t>(shape_.size()));
  if (!offsets_.empty()) view.data = buffer_->data() + placed_.first * static_cast<std::int64_t>(size_of(dtype_));
  std::copy(placed_.strides.begin(), placed_.strides.end(), view.strides);
  return view;
}

std::byte* StridedTensor::at(std::size_t index) const {
  return buffer_->data() + (placed_.first + offsets_[index]) * static_cast<std::int64_t>(size_of(dtype_));
}

double StridedTensor::get(std::size_t index) const { return decode(dtype_, at(index)); }

void StridedTensor::set(std::size_t index, double value) { encode(dtype_, value, at(index)); }

std::vector<double> StridedTensor::values() const {
  std::vector<double> values(size());
  for (std::size_t e = 0; e < values.size(); ++e) values[e] = get(e);
  return values;
}

bool StridedTensor::gaps_hold(std::byte value) const {
  std::vector<char> owned(buffer_->size(), 0);
  for (std::size_t e = 0; e < size(); ++e) std::memset(owned.data() + (at(e) - buffer_->data()), 1, size_of(dtype_));
  for (std::size_t byte = 0; byte < owned.size(); ++byte) {
    if (owned[byte] == 0 && buffer_->data()[byte] != value) return false;
  }
  return buffer_->guards_intact();
}

}  // namespace sorot::support
