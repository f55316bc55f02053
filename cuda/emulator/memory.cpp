#include "cuda/emulator/memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace sorot::inline v0::emulator {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kAlignment = 256;                      // as CUDA's
constexpr unsigned char kPoison = 0xFF;                      // NaN in every floating type
constexpr unsigned char kGuard = 0xA5;                       // around an allocation, inside its pages
constexpr std::size_t kArenaBytes = std::size_t{256} << 30;  // addresses only; memory is taken as it is touched

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

// What the signal handler needs; written before it is installed.
const DeviceMemory* guarded_memory = nullptr;
struct sigaction earlier_handler;

/// A host access to device memory: say what it hit, then let it fail as it would have.
void report_fault(int signal, siginfo_t* info, void* context) {
  if (guarded_memory->owns(info->si_addr)) {
    char text[400];
    const int length = std::snprintf(text, sizeof text,
                                     "sorot emulator: the host touched device memory at %p, %s; device memory is "
                                     "reached through copies and kernels only\n",
                                     info->si_addr, guarded_memory->describe(info->si_addr).c_str());
    if (write(STDERR_FILENO, text, static_cast<std::size_t>(length)) < 0) return;
  }
  sigaction(signal, &earlier_handler, nullptr);
  static_cast<void>(context);
}

void install_fault_report(const DeviceMemory* memory) {
  guarded_memory = memory;
  struct sigaction action = {};
  action.sa_sigaction = report_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &earlier_handler);
}

std::byte* at(std::uintptr_t address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
}

bool all_guard(std::uintptr_t begin, std::uintptr_t end) {
  return std::all_of(at(begin), at(end), [](std::byte b) { return b == std::byte{kGuard}; });
}

}  // namespace

bool DeviceMemory::reserve() {
  if (arena_ != 0) return true;
  for (std::size_t bytes = kArenaBytes; bytes >= (std::size_t{1} << 30); bytes /= 4) {
    void* arena = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena == MAP_FAILED) continue;
    arena_ = reinterpret_cast<std::uintptr_t>(arena);
    arena_bytes_ = bytes;
    install_fault_report(this);
    return true;
  }
  return false;
}

void* DeviceMemory::allocate(std::size_t bytes) {
  if (!reserve() || bytes > arena_bytes_) return nullptr;
  Allocation made;
  made.bytes = bytes;
  made.page_bytes = round_up(round_up(bytes, kAlignment), kPage);

  // The first gap that has room for it and a guard page on either side.
  std::uintptr_t free_from = arena_ + kPage;
  auto next = allocations_.begin();
  while (next != allocations_.end() && next->first_page - free_from < made.page_bytes + kPage) {
    free_from = next->first_page + next->page_bytes + kPage;
    ++next;
  }
  if (next == allocations_.end() && arena_ + arena_bytes_ - free_from < made.page_bytes + kPage) return nullptr;
  made.first_page = free_from;
  // Against the end of its pages, so that a long overrun faults.
  made.begin = made.first_page + made.page_bytes - round_up(bytes, kAlignment);
  made.number = ++last_number_;

  if (mprotect(at(made.first_page), made.page_bytes, PROT_READ | PROT_WRITE) != 0) return nullptr;
  constexpr std::size_t kMostPoison = std::size_t{1} << 30;  // a sparse giant stays untouched
  if (bytes <= kMostPoison) {
    std::memset(at(made.first_page), kGuard, made.begin - made.first_page);
    std::memset(at(made.begin), kPoison, bytes);
    std::memset(at(made.begin + bytes), kGuard, made.first_page + made.page_bytes - made.begin - bytes);
  }
  open(made, false);
  allocations_.insert(next, made);
  ++version_;
  return at(made.begin);
}

bool DeviceMemory::release(void* memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const auto found =
      std::find_if(allocations_.begin(), allocations_.end(), [&](const Allocation& a) { return a.begin == address; });
  if (found == allocations_.end()) return false;
  madvise(at(found->first_page), found->page_bytes, MADV_DONTNEED);
  mprotect(at(found->first_page), found->page_bytes, PROT_NONE);
  allocations_.erase(found);
  ++version_;
  return true;
}

const Allocation* DeviceMemory::find(const void* address, std::size_t bytes) const {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  auto above = std::upper_bound(allocations_.begin(), allocations_.end(), wanted,
                                [](std::uintptr_t value, const Allocation& a) { return value < a.begin; });
  if (above == allocations_.begin()) return nullptr;
  --above;
  return above->holds(wanted, bytes) ? &*above : nullptr;
}

bool DeviceMemory::owns(const void* address) const {
  return arena_ != 0 && reinterpret_cast<std::uintptr_t>(address) - arena_ < arena_bytes_;
}

void DeviceMemory::open(bool accessible) const {
  for (const Allocation& allocation : allocations_) open(allocation, accessible);
}

void DeviceMemory::open(const Allocation& allocation, bool accessible) {
  mprotect(at(allocation.first_page), allocation.page_bytes, accessible ? PROT_READ | PROT_WRITE : PROT_NONE);
}

std::string DeviceMemory::damage() const {
  for (const Allocation& a : allocations_) {
    if (a.bytes > (std::size_t{1} << 30)) continue;
    const std::uintptr_t end = a.first_page + a.page_bytes;
    if (all_guard(a.first_page, a.begin) && all_guard(a.begin + a.bytes, end)) continue;
    return "memory beside allocation " + std::to_string(a.number) + " (" + std::to_string(a.bytes) +
           " bytes) was overwritten";
  }
  return "";
}

std::string DeviceMemory::describe(const void* address) const {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  char text[120];
  if (!owns(address)) {
    std::snprintf(text, sizeof text, "0x%zx, which is not device memory", static_cast<std::size_t>(wanted));
    return text;
  }
  const Allocation* nearest = nullptr;
  std::uintptr_t distance = 0;
  for (const Allocation& a : allocations_) {
    const std::uintptr_t away = wanted < a.begin             ? a.begin - wanted
                                : wanted < a.begin + a.bytes ? 0
                                                             : wanted - a.begin - a.bytes;
    if (nearest == nullptr || away < distance || a.holds(wanted, 0)) {
      nearest = &a;
      distance = a.holds(wanted, 1) ? 0 : away;
    }
  }
  if (nearest == nullptr) {
    std::snprintf(text, sizeof text, "0x%zx, which is in no live allocation", static_cast<std::size_t>(wanted));
    return text;
  }
  const auto number = static_cast<unsigned long long>(nearest->number);
  if (nearest->holds(wanted, 1)) {
    std::snprintf(text, sizeof text, "byte %zu of allocation %llu (%zu bytes)",
                  static_cast<std::size_t>(wanted - nearest->begin), number, nearest->bytes);
  } else {
    std::snprintf(text, sizeof text, "%zu bytes %s allocation %llu (%zu bytes)", static_cast<std::size_t>(distance),
                  wanted < nearest->begin ? "before" : "behind", number, nearest->bytes);
  }
  return text;
}

}  // namespace sorot::inline v0::emulator
