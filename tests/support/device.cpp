#include "tests/support/device.h"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "cuda/emulator/control.h"
#include "sorot/version.h"

namespace sorot::support {
namespace {

void require(const Status& status) {
  if (!status.ok()) throw DeviceError(status.message());
}

bool in_this_build(const std::string& name) {
  for (std::size_t d = 0; d < build_info().device_count; ++d) {
    if (name == build_info().devices[d]->name) return true;
  }
  return false;
}

}  // namespace

Device::Device(const std::string& name) {
  if (!in_this_build(name)) throw std::invalid_argument("no device '" + name + "' in this build");
  if (name == "reference") {
    context_ = Context::reference();
    return;
  }
  require(probe(name));
  if constexpr (kHasCuda) {
    machine::Stream stream = nullptr;
    require(machine::create_stream(stream));
    stream_.reset(stream);
    require(Context::cuda(0, stream, context_));
  }
}

Status Device::probe(const std::string& name) {
  Context context;
  return name == "cuda" ? Context::cuda(0, nullptr, context) : Status();
}

Context Device::another_context() const {
  Context context = Context::reference();
  if (!on_host()) require(Context::cuda(0, stream(), context));
  return context;
}

void Device::wait() const {
  if constexpr (kHasCuda) {
    if (!on_host()) require(machine::synchronize(stream()));
  }
}

void Device::DestroyStream::operator()([[maybe_unused]] CUstream_st* stream) const noexcept {
  if constexpr (kHasCuda) static_cast<void>(machine::destroy_stream(stream));
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (std::size_t d = 0; d < build_info().device_count; ++d) {
    const std::string name = build_info().devices[d]->name;
    if (Device::probe(name).ok()) names.push_back(name);
  }
  return names;
}

std::string cuda_model() {
  if constexpr (kHasCuda) {
    machine::DeviceProperties properties;
    require(machine::device_properties(0, properties));
    return properties.name;
  }
  return "";
}

std::string whole_message(const Status& status) {
  if constexpr (kEmulated) {
    std::string report = emulator::last_report();
    if (!status.ok() && report.starts_with(status.message())) return report;
  }
  return status.message();
}

DeviceMemory::DeviceMemory(const Device& device, std::size_t size) : device_(&device), size_(size) {
  if (device.on_host()) {
    host_ = std::make_unique<GuardedBuffer>(size);
    if (size > 0) data_ = host_->data();
  } else if constexpr (kHasCuda) {
    void* memory = nullptr;
    require(machine::allocate(size, memory));
    data_ = static_cast<std::byte*>(memory);
  }
}

DeviceMemory::~DeviceMemory() {
  if constexpr (kHasCuda) {
    if (host_ == nullptr && data_ != nullptr) static_cast<void>(machine::release(data_));
  }
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : device_(other.device_), size_(other.size_), host_(std::move(other.host_)), data_(other.data_) {
  other.data_ = nullptr;
}

void DeviceMemory::fill(std::byte value) {
  if (size_ == 0) return;
  if (host_ != nullptr) {
    host_->fill(value);
  } else if constexpr (kHasCuda) {
    require(machine::fill(data_, static_cast<unsigned char>(value), size_, device_->stream()));
  }
}

void DeviceMemory::write(std::size_t at, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (host_ != nullptr) {
    std::memcpy(data_ + at, from, bytes);
  } else if constexpr (kHasCuda) {
    require(machine::copy(data_ + at, from, bytes, machine::Copy::host_to_device, device_->stream()));
  }
}

void DeviceMemory::read(std::size_t at, void* to, std::size_t bytes) const {
  if (bytes == 0) return;
  if (host_ != nullptr) {
    std::memcpy(to, data_ + at, bytes);
  } else if constexpr (kHasCuda) {
    require(machine::copy(to, data_ + at, bytes, machine::Copy::device_to_host, device_->stream()));
    device_->wait();
  }
}

}  // namespace sorot::support
