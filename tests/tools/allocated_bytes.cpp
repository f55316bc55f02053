#include "tests/tools/allocated_bytes.h"

#include <cstdlib>
#include <new>

namespace sorot::tests {
std::atomic<std::size_t> allocated_bytes;
}

// In a file of their own: where the compiler sees only half of a new-delete pair inlined, it warns of a mismatch.
void* operator new(std::size_t bytes) {
  sorot::tests::allocated_bytes += bytes;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  sorot::tests::allocated_bytes += bytes;
  const auto align = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(align, (bytes + align - 1) / align * align)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
