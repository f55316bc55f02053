#pragma once

#include <cstddef>
#include <cstdint>

#include "sorot/export.h"
#include "sorot/status.h"

struct CUstream_st;  // what CUDA calls cudaStream_t points at one

namespace sorot {
inline namespace v0 {

namespace core {

struct Backend;
class ContextAccess;

/// What a Context keeps of a CUDA device; zeros for other devices.
struct CudaDevice {
  CUstream_st* stream = nullptr;
  std::int32_t ordinal = 0;
  std::int32_t compute_capability = 0;  ///< 80 for 8.0
  std::int32_t multiprocessors = 0;
  std::int32_t shared_bytes_per_block = 0;
  std::int32_t shared_bytes_per_multiprocessor = 0;
  std::int32_t threads_per_multiprocessor = 0;
};

}  // namespace core

/// Scratch memory for one call, in the memory of the Context's device. The caller owns it, 256-byte aligned; its
/// contents are undefined before and after, and it needs no zeroing. Null where a plan asks for 0 bytes.
struct Workspace {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// The device that calls run on. Serves one host thread at a time; distinct contexts run in parallel.
class Context {
 public:
  /// No device: every call answers kNoDevice.
  Context() noexcept = default;

  Context(Context&& other) noexcept : backend_(other.backend_), cuda_(other.cuda_) { other.backend_ = nullptr; }
  Context& operator=(Context&& other) noexcept {
    const core::Backend* backend = other.backend_;
    other.backend_ = nullptr;
    backend_ = backend;
    cuda_ = other.cuda_;
    return *this;
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() = default;

  /// The plain loops that define every result: host memory, the calling thread.
  SOROT_API static Context reference() noexcept;

  /// A CUDA device by its ordinal, in the order of the CUDA runtime; tensors and workspace lie in its memory. All work
  /// goes to `stream` and nothing waits for it; the calling thread's current device is left as it was. The stream
  /// must outlive the Context's calls. In an EMULATED build the device is the emulator's, ordinal 0.
  /// Errors: kNoDevice (no driver, no device, or a library built without CUDA), kInvalidArgument (an ordinal beyond
  /// the devices there are), kUnsupported (a device older than sm_75), kDeviceError. `context` is then left as it was.
  SOROT_API static Status cuda(int ordinal, CUstream_st* stream, Context& context) noexcept;

  /// "reference", "cuda", or "none" for a default-constructed or moved-from Context.
  SOROT_API const char* device_name() const noexcept;

 private:
  friend class core::ContextAccess;
  const core::Backend* backend_ = nullptr;
  core::CudaDevice cuda_;
};

}  // namespace v0
}  // namespace sorot
