#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "tools/sorot/failure.h"

namespace sorot::tools {

/// Uninitialised memory aligned as the library wants a workspace. Null if it has no bytes.
class Buffer {
 public:
  static constexpr std::size_t kAlignment = 256;

  Buffer() = default;

  /// Refuses more than the machine has: under overcommit such an allocation would succeed and be killed in use.
  explicit Buffer(std::uint64_t bytes) : bytes_(bytes) {
    const std::uint64_t memory =
        static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    if (bytes > memory) refuse("a tensor needs {} bytes, but this machine has {} bytes of memory", bytes, memory);
    if (bytes > 0) memory_.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment})));
  }

  std::byte* data() const noexcept { return memory_.get(); }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Release {
    void operator()(std::byte* memory) const noexcept { ::operator delete (memory, std::align_val_t{kAlignment}); }
  };
  std::unique_ptr<std::byte[], Release> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace sorot::tools
