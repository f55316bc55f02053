#include "tests/ops/allocation_counter.h"

#include <cerrno>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
// Part of the sanitizer's runtime; g++ 12 comes without the header that declares it.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, std::size_t),
                                                         void (*)(const volatile void*));
#endif

namespace sorot::support {
namespace {

// constinit and trivial: reading it allocates nothing, not even the first time a thread does.
constinit thread_local bool counting = false;
constinit thread_local long allocations = 0;

void note_allocation() noexcept {
  if (counting) ++allocations;
}

}  // namespace

AllocationCounter::AllocationCounter() noexcept {
#if defined(__SANITIZE_ADDRESS__)
  [[maybe_unused]] static const int kInstalled = __sanitizer_install_malloc_and_free_hooks(
      [](const volatile void*, std::size_t) { note_allocation(); }, [](const volatile void*) {});
#endif
  allocations = 0;
  counting = true;
}

AllocationCounter::~AllocationCounter() { counting = false; }

long AllocationCounter::count() const noexcept { return allocations; }

}  // namespace sorot::support

// Without a sanitizer these take the place of the C library's own, for this executable.
#if !defined(__SANITIZE_ADDRESS__)
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) noexcept {
  sorot::support::note_allocation();
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  sorot::support::note_allocation();
  return __libc_calloc(count, size);
}
void* realloc(void* pointer, std::size_t size) noexcept {
  sorot::support::note_allocation();
  return __libc_realloc(pointer, size);
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  sorot::support::note_allocation();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  sorot::support::note_allocation();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** result, std::size_t alignment, std::size_t size) noexcept {
  sorot::support::note_allocation();
  *result = __libc_memalign(alignment, size);
  return *result == nullptr ? ENOMEM : 0;
}
}
#endif
