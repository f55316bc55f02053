#include "sorot/status.h"

#include <cstring>

namespace sorot::inline v0 {

const char* name(StatusCode code) noexcept {
  switch (code) {
    case StatusCode::kOk: return "kOk";
    case StatusCode::kInvalidArgument: return "kInvalidArgument";
    case StatusCode::kUnsupported: return "kUnsupported";
    case StatusCode::kWorkspaceTooSmall: return "kWorkspaceTooSmall";
    case StatusCode::kNoDevice: return "kNoDevice";
    case StatusCode::kDeviceError: return "kDeviceError";
    case StatusCode::kOutOfMemory: return "kOutOfMemory";
    case StatusCode::kInternal: return "kInternal";
  }
  return "unknown StatusCode";
}

Status::Status(StatusCode code, const char* message, std::int32_t device_error) noexcept
    : code_(code), device_error_(device_error) {
  if (message == nullptr) return;
  const std::size_t length = strnlen(message, sizeof message_ - 1);
  std::memcpy(message_, message, length);
}

}  // namespace sorot::inline v0
