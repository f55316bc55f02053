#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "cuda/emulator/engine.h"

/// What a running thread can do: the meaning of the machine's instructions. Every function takes the line of the
/// kernel that used it.
namespace sorot::inline v0::emulator {

/// An instruction that older devices lack.
void need_architecture(int compute_capability, const char* instruction, Site site);

// ---- Barriers

void sync_block(Site site);
bool sync_block_or(bool predicate, Site site);
void sync_named(unsigned barrier, unsigned threads, Site site);
void arrive_named(unsigned barrier, unsigned threads, Site site);
void sync_warp(unsigned mask, Site site);

/// Memory is sequentially consistent here: a fence says something to the race checker only.
inline void fence_device() {
  if (engine.settings.race) engine.race.fence(engine.current->number);
}

template <class Condition>
void spin_wait(Condition condition, Site site) {
  while (!condition()) engine.spin(site);
  ++engine.progress;
}

// ---- Across a warp

enum class Shuffle : std::uint8_t { index, exclusive_or, up, down };

std::uint32_t shuffle(Shuffle kind, const char* instruction, std::uint32_t value, unsigned operand, unsigned mask,
                      Site site);

/// Lanes of the mask whose predicate holds.
unsigned vote(const char* instruction, bool predicate, unsigned mask, Site site);

// ---- Tensor cores: a whole warp at once

/// What two bytes of a register are.
enum class HalfType : std::uint8_t { f16, bf16 };

void mma_m16n8k16(HalfType type, float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                  Site site);
void ldmatrix_x4(const char* instruction, bool transposed, std::uint32_t row, std::uint32_t (&r)[4], Site site);

// ---- Memory

/// Shared memory has addresses of its own. Those of a block begin here, so that 0 is none.
inline constexpr std::uint32_t kFirstSharedAddress = 1024;

std::uint32_t shared_address(const void* address, Site site);

/// Where that is on the host; any address, checked by who accesses it.
inline std::byte* at_shared_address(std::uint32_t address) {
  return engine.shared + (static_cast<std::ptrdiff_t>(address) - std::ptrdiff_t{kFirstSharedAddress});
}

/// The block's shared memory, of which the kernel wants `bytes`.
void* shared_memory(std::size_t bytes, Site site);

void check_shared_slowly(const void* address, std::size_t bytes, Access access, const char* instruction, Site site);
void check_shared_bounds(const void* address, std::size_t bytes, const char* instruction, Site site);
void check_shared_race(const void* address, std::size_t bytes, Access access, const char* instruction, Site site);
const Allocation* check_global_bounds(const void* address, std::size_t bytes, const char* instruction, Site site);
void check_global_race(const void* address, std::size_t bytes, Access access, const char* instruction, Site site);
void check_global_slowly(const void* address, std::size_t bytes, Access access, const char* instruction, Site site);

/// Inside the block's shared memory, aligned, and ordered where that is checked.
inline void check_shared(const void* address, std::size_t bytes, Access access, const char* instruction, Site site) {
  const std::uintptr_t offset =
      reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(engine.shared);
  const bool inside = offset < engine.shared_bytes && engine.shared_bytes - offset >= bytes;
  if (!inside || offset % bytes != 0 || engine.observed) [[unlikely]] {
    check_shared_slowly(address, bytes, access, instruction, site);
  }
}

/// Recently used ranges of device memory, by page.
struct RangeCache {
  static constexpr std::size_t kEntries = 64;
  std::uint64_t version = 0;
  Allocation entries[kEntries];
};
extern RangeCache range_cache;

/// Inside one allocation of device memory, and aligned.
inline void check_global(const void* address, std::size_t bytes, Access access, const char* instruction, Site site) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  const Allocation& known = range_cache.entries[value / 4096 % RangeCache::kEntries];
  const bool inside = known.holds(value, bytes) && range_cache.version == engine.memory.version();
  if (!inside || value % bytes != 0 || engine.observed) [[unlikely]] {
    check_global_slowly(address, bytes, access, instruction, site);
  }
}

/// An atomic: nothing comes between its load and its store. Gives the value before.
template <class T, class Modify>
T read_modify_write_shared(T* address, const char* instruction, Site site, Modify modify) {
  check_shared(address, sizeof(T), Access::atomic, instruction, site);
  return std::exchange(*address, modify(*address));
}
template <class T, class Modify>
T read_modify_write_global(T* address, const char* instruction, Site site, Modify modify) {
  check_global(address, sizeof(T), Access::atomic, instruction, site);
  return std::exchange(*address, modify(*address));
}

// ---- Asynchronous copies of 16 bytes

void cp_async(std::uint32_t to, const void* from, bool valid, Site site);
void cp_async_commit(Site site);
void cp_async_wait(unsigned pending, Site site);

/// A load or store in the code of a kernel, from objects that are compiled to tell (tests/emulator/race_hooks.cpp).
/// Where it is one of the functions above that accesses memory, it has been checked already. `locate` gives the line of
/// an address of code.
void plain_access(const void* address, std::size_t bytes, bool write, const void* code, Site (*locate)(const void*));

// ---- Approximate instructions

/// `exact` with a relative error of up to `bound`, always the same for the same instruction, operand and seed.
float perturbed(double exact, double bound, std::uint32_t instruction, float operand);

/// 0 of the same sign in place of a subnormal.
inline float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x; }

}  // namespace sorot::inline v0::emulator
