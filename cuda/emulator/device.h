#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "cuda/emulator/engine.h"

/// What a running thread can do: the meaning of the machine's instructions. Every function takes the line of the
/// kernel that used it.
namespace sorot::inline v0::emulator {

// ---- Barriers

void sync_block(Site site);
bool sync_block_or(bool predicate, Site site);
void sync_named(unsigned barrier, unsigned threads, Site site);
void arrive_named(unsigned barrier, unsigned threads, Site site);
void sync_warp(unsigned mask, Site site);

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

// ---- Memory

/// The block's shared memory, of which the kernel wants `bytes`.
void* shared_memory(std::size_t bytes, Site site);

void check_shared_slowly(const void* address, std::size_t bytes, Access access, const char* instruction, Site site);
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

// ---- Approximate instructions

/// `exact` with a relative error of up to `bound`, always the same for the same instruction, operand and seed.
float perturbed(double exact, double bound, std::uint32_t instruction, float operand);

/// 0 of the same sign in place of a subnormal.
inline float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x; }

}  // namespace sorot::inline v0::emulator
