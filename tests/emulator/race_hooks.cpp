#include <link.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include "cuda/emulator/device.h"

/// What ThreadSanitizer's instrumentation calls for each load and store. Objects with kernels are compiled with it, but
/// the program is not linked with ThreadSanitizer: accesses come here, and so to the emulator's race checker, also
/// those that went past the machine's wrappers.
namespace sorot::emulator {
namespace {

/// The line of an address of code, by addr2line, which takes milliseconds; a program has few that access device memory
/// past the wrappers.
machine::Site locate(const void* code) {
  static std::map<const void*, std::pair<std::string, int>> known;
  const auto found = known.find(code);
  if (found != known.end()) return {found->second.first.c_str(), found->second.second};
  auto& place = known[code];
  place.first = "unknown";

  std::uintptr_t loaded_at = 0;  // the first object is the program
  const auto note = [](dl_phdr_info* info, std::size_t, void* to) {
    *static_cast<std::uintptr_t*>(to) = info->dlpi_addr;
    return 1;
  };
  dl_iterate_phdr(note, &loaded_at);
  char program[4096] = {};
  if (readlink("/proc/self/exe", program, sizeof program - 1) < 0) return {place.first.c_str(), 0};
  char command[5000];
  std::snprintf(command, sizeof command, "addr2line -e '%s' %#zx", program,
                reinterpret_cast<std::uintptr_t>(code) - 1 - loaded_at);  // the call, not what it returns to
  std::FILE* output = popen(command, "r");
  char file[4096] = {};
  if (output != nullptr && std::fscanf(output, "%4095[^:]:%d", file, &place.second) == 2) place.first = file;
  if (output != nullptr) pclose(output);
  return {place.first.c_str(), place.second};
}

void access(const void* address, std::size_t bytes, bool write, const void* code) {
  plain_access(address, bytes, write, code, locate);
}

}  // namespace
}  // namespace sorot::emulator

#define SOROT_HOOKS(bytes)                                                       \
  void __tsan_read##bytes(void* address) {                                       \
    sorot::emulator::access(address, bytes, false, __builtin_return_address(0)); \
  }                                                                              \
  void __tsan_write##bytes(void* address) {                                      \
    sorot::emulator::access(address, bytes, true, __builtin_return_address(0));  \
  }                                                                              \
  void __tsan_unaligned_read##bytes(void* address) {                             \
    sorot::emulator::access(address, bytes, false, __builtin_return_address(0)); \
  }                                                                              \
  void __tsan_unaligned_write##bytes(void* address) {                            \
    sorot::emulator::access(address, bytes, true, __builtin_return_address(0));  \
  }

extern "C" {
void __tsan_init() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(void* address, std::size_t bytes) {
  sorot::emulator::access(address, bytes, false, __builtin_return_address(0));
}
void __tsan_write_range(void* address, std::size_t bytes) {
  sorot::emulator::access(address, bytes, true, __builtin_return_address(0));
}
SOROT_HOOKS(1)
SOROT_HOOKS(2)
SOROT_HOOKS(4)
SOROT_HOOKS(8)
SOROT_HOOKS(16)
}
