#pragma once

#include <cstddef>

#include "sorot/export.h"
#include "sorot/status.h"

namespace sorot {
inline namespace v0 {

namespace core {
struct Backend;
class ContextAccess;
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

  Context(Context&& other) noexcept : backend_(other.backend_) { other.backend_ = nullptr; }
  Context& operator=(Context&& other) noexcept {
    const core::Backend* backend = other.backend_;
    other.backend_ = nullptr;
    backend_ = backend;
    return *this;
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() = default;

  /// The plain loops that define every result: host memory, the calling thread.
  SOROT_API static Context reference() noexcept;

  /// "reference", or "none" for a default-constructed or moved-from Context.
  SOROT_API const char* device_name() const noexcept;

 private:
  friend class core::ContextAccess;
  const core::Backend* backend_ = nullptr;
};

}  // namespace v0
}  // namespace sorot
