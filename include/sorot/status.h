#pragma once

#include <cstdint>

#include "sorot/export.h"

namespace sorot {
inline namespace v0 {

enum class StatusCode : std::int32_t {
  kOk = 0,
  kInvalidArgument,    ///< the caller is wrong, on every backend
  kUnsupported,        ///< nobody is wrong: this device lacks it, and the message says what
  kWorkspaceTooSmall,  ///< the message has the bytes needed
  kNoDevice,           ///< the Context has no device, or the machine lacks one
  kDeviceError,        ///< the device failed; see device_error()
  kOutOfMemory,
  kInternal,  ///< a defect of this library
};

/// "kInvalidArgument" and so on; "unknown StatusCode" for a value that is none of them.
SOROT_API const char* name(StatusCode code) noexcept;

/// Result of every call that can fail. Trivially copyable; the message lives inside the object, so nothing
/// allocates and nothing dangles.
class [[nodiscard]] Status {
 public:
  /// Success.
  constexpr Status() noexcept = default;

  /// A failure (or kOk). The message is copied and cut to what fits; device_error is the device's own code.
  SOROT_API Status(StatusCode code, const char* message, std::int32_t device_error = 0) noexcept;

  constexpr bool ok() const noexcept { return code_ == StatusCode::kOk; }
  constexpr StatusCode code() const noexcept { return code_; }

  /// What was wrong, with the offending value and what would be right; "" when ok.
  constexpr const char* message() const noexcept { return message_; }

  /// The CUDA error code behind kDeviceError, else 0.
  constexpr std::int32_t device_error() const noexcept { return device_error_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::int32_t device_error_ = 0;
  char message_[312] = {};
};

}  // namespace v0
}  // namespace sorot
