#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuda/machine/runtime.h"
#include "sorot/context.h"
#include "tests/support/guarded_buffer.h"

/// Devices and their memory, for code that works on any of them. Where a build has no CUDA, or no emulator, nothing
/// here refers to it.
namespace sorot::support {

inline constexpr bool kHasCuda = SOROT_HAS_CUDA != 0;   ///< "cuda" is a device of this build
inline constexpr bool kEmulated = SOROT_EMULATED != 0;  ///< and it is the emulator's

/// What a device answered to a request of ours.
class DeviceError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A device of this build, opened. "cuda" is the first one, with a stream of its own: never the default stream. Memory
/// of the device and work on it end before the object does.
class Device {
 public:
  /// Throws std::invalid_argument for a name this build does not have, DeviceError if it cannot be had here.
  explicit Device(const std::string& name);

  /// The library's answer to opening a device: ok, or why it cannot be had on this machine.
  static Status probe(const std::string& name);

  const Context& context() const { return context_; }
  Context another_context() const;  ///< on the same device and stream
  bool on_host() const { return stream_ == nullptr; }
  machine::Stream stream() const { return stream_.get(); }  ///< null on the host

  /// Until all work that was given to the stream is done; throws DeviceError if something went wrong in it.
  void wait() const;

 private:
  struct DestroyStream {
    void operator()(CUstream_st* stream) const noexcept;
  };
  std::unique_ptr<CUstream_st, DestroyStream> stream_;
  Context context_;
};

/// Names of the devices of this build that can be opened on this machine.
std::vector<std::string> device_names();

/// What people call the CUDA device: "NVIDIA H200".
std::string cuda_model();

/// A Status's message; of what went wrong in the emulator the whole report, which may be longer than a Status holds.
std::string whole_message(const Status& status);

/// Bytes in a device's memory, at a 256-byte boundary; null if there are none. On the host between guards; in the
/// emulator whoever leaves them is reported at once. Throws DeviceError for whatever fails.
class DeviceMemory {
 public:
  DeviceMemory(const Device& device, std::size_t size);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  Workspace workspace() const { return {data_, size_}; }

  void fill(std::byte value);
  void write(std::size_t at, const void* from, std::size_t bytes);
  void read(std::size_t at, void* to, std::size_t bytes) const;  ///< after all work on the device
  bool guards_intact() const { return host_ == nullptr || host_->guards_intact(); }

 private:
  const Device* device_;
  std::size_t size_;
  std::unique_ptr<GuardedBuffer> host_;
  std::byte* data_ = nullptr;
};

}  // namespace sorot::support
