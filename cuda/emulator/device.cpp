#include "cuda/emulator/device.h"

#include <bit>

#include "cuda/emulator/collective.h"

namespace sorot::inline v0::emulator {

RangeCache range_cache;

namespace {

/// A thread comes to a barrier; true if it is complete, and gone, with that. `expected` 0: all threads that live.
bool arrive(unsigned number, unsigned expected, const char* instruction, bool predicate, bool waits, Site site) {
  Engine& e = engine;
  Barrier& barrier = e.barriers[number];
  if (barrier.arrived == 0) {
    barrier.expected = expected;
    barrier.instruction = instruction;
    barrier.site = site;
  } else if (expected == 0 && !same_line(barrier.site, site)) {
    // Hardware would let them pass; in a kernel it is a barrier in a branch that not all threads took.
    e.fail(kErrorLaunchFailure, "divergent barrier: " + e.who() + " reached " + instruction + " at " + e.place(site) +
                                    ", while " + std::to_string(barrier.arrived) + " threads wait in " +
                                    barrier.instruction + " at " + e.place(barrier.site));
  } else if (barrier.expected != expected) {
    e.fail(kErrorLaunchFailure, e.who() + " expects " + std::to_string(expected) + " threads at barrier " +
                                    std::to_string(number) + " in " + instruction + " at " + e.place(site) + ", but " +
                                    barrier.instruction + " at " + e.place(barrier.site) + " expects " +
                                    std::to_string(barrier.expected));
  }
  ++barrier.arrived;
  barrier.any = barrier.any || predicate;
  if (e.settings.race) e.race.release(e.current->number, barrier.clock);
  if (waits) barrier.waiting.push_back(e.current);
  if (barrier.arrived < (expected == 0 ? e.live : expected)) return false;
  e.complete(barrier);
  return true;
}

void check_named(unsigned barrier, unsigned threads, const char* instruction, Site site) {
  Engine& e = engine;
  if (barrier == 0 || barrier >= Engine::kBarriers) {
    e.fail(kErrorLaunchFailure, e.who() + ": " + instruction + " at " + e.place(site) + " names barrier " +
                                    std::to_string(barrier) + ", expected 1..15");
  }
  if (threads == 0 || threads % machine::kWarpSize != 0 || threads > kMostThreads) {
    e.fail(kErrorLaunchFailure, e.who() + ": " + instruction + " at " + e.place(site) + " expects " +
                                    std::to_string(threads) + " threads, expected a multiple of 32, 32..1024");
  }
}

}  // namespace

void need_architecture(int compute_capability, const char* instruction, Site site) {
  Engine& e = engine;
  if (e.settings.profile >= compute_capability) return;
  e.fail(kErrorNoKernelImage, e.who() + ": " + instruction + " at " + e.place(site) + " needs sm_" +
                                  std::to_string(compute_capability) + ", but the device is sm_" +
                                  std::to_string(e.settings.profile));
}

// ---- Barriers

void sync_block(Site site) {
  if (!arrive(0, 0, "sync_block", false, true, site)) engine.wait("sync_block", site);
}

bool sync_block_or(bool predicate, Site site) {
  Thread& me = *engine.current;
  if (!arrive(0, 0, "sync_block_or", predicate, true, site)) engine.wait("sync_block_or", site);
  return me.result != 0;
}

void sync_named(unsigned barrier, unsigned threads, Site site) {
  check_named(barrier, threads, "sync_named", site);
  if (!arrive(barrier, threads, "sync_named", false, true, site)) engine.wait("sync_named", site);
}

void arrive_named(unsigned barrier, unsigned threads, Site site) {
  check_named(barrier, threads, "arrive_named", site);
  arrive(barrier, threads, "arrive_named", false, false, site);
}

void sync_warp(unsigned mask, Site site) {
  Engine& e = engine;
  Thread& me = *e.current;
  if (!e.settings.race) {
    collective("sync_warp", mask, nullptr, site, [](void**) {});
    return;
  }
  // Every lane brings a clock; all leave with what all have done.
  me.clock.clear();
  e.race.release(me.number, me.clock);
  collective("sync_warp", mask, &me.clock, site, [&](void** clocks) {
    Clock all;
    for (unsigned lanes = mask; lanes != 0; lanes &= lanes - 1) {
      const Clock& other = *static_cast<Clock*>(clocks[std::countr_zero(lanes)]);
      all.resize(other.size(), 0);
      for (std::size_t t = 0; t < all.size(); ++t) all[t] = std::max(all[t], other[t]);
    }
    for (unsigned lanes = mask; lanes != 0; lanes &= lanes - 1) {
      e.race.acquire(me.warp->lanes[std::countr_zero(lanes)]->number, all);
    }
  });
}

// ---- Across a warp

std::uint32_t shuffle(Shuffle kind, const char* instruction, std::uint32_t value, unsigned operand, unsigned mask,
                      Site site) {
  struct Lane {
    std::uint32_t value, result;
    unsigned source;
    bool bad;
  };
  const unsigned lane = engine.current->lane;
  const unsigned source = kind == Shuffle::index          ? operand % machine::kWarpSize
                          : kind == Shuffle::exclusive_or ? (lane ^ operand)
                          : kind == Shuffle::up           ? (operand > lane ? lane : lane - operand)
                                                          : lane + operand;
  Lane mine{value, value, source < machine::kWarpSize ? source : lane, false};
  collective(instruction, mask, &mine, site, [&](void** lanes) {
    for (unsigned rest = mask; rest != 0; rest &= rest - 1) {
      Lane& to = *static_cast<Lane*>(lanes[std::countr_zero(rest)]);
      to.bad = (mask >> to.source & 1) == 0;
      if (!to.bad) to.result = static_cast<Lane*>(lanes[to.source])->value;
    }
  });
  if (mine.bad) {
    engine.fail(kErrorLaunchFailure, engine.who() + ": " + instruction + " at " + engine.place(site) + " reads lane " +
                                         std::to_string(mine.source) + ", which is not in the mask");
  }
  return mine.result;
}

unsigned vote(const char* instruction, bool predicate, unsigned mask, Site site) {
  struct Lane {
    bool predicate;
    unsigned result;
  };
  Lane mine{predicate, 0};
  collective(instruction, mask, &mine, site, [&](void** lanes) {
    unsigned result = 0;
    for (unsigned rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      if (static_cast<Lane*>(lanes[lane])->predicate) result |= 1U << lane;
    }
    for (unsigned rest = mask; rest != 0; rest &= rest - 1) {
      static_cast<Lane*>(lanes[std::countr_zero(rest)])->result = result;
    }
  });
  return mine.result;
}

// ---- Memory

void* shared_memory(std::size_t bytes, Site site) {
  if (bytes > engine.shared_bytes) {
    engine.fail(kErrorIllegalAddress, engine.who() + ": shared at " + engine.place(site) + " wants " +
                                          std::to_string(bytes) + " bytes, but the launch gave the block " +
                                          std::to_string(engine.shared_bytes));
  }
  return engine.shared;
}

std::uint32_t shared_address(const void* address, Site site) {
  const std::uintptr_t offset =
      reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(engine.shared);
  if (offset >= Engine::kSharedArena) {
    engine.fail(kErrorIllegalAddress, engine.who() + ": shared_address at " + engine.place(site) +
                                          " of an address that is not shared memory (" +
                                          engine.memory.describe(address) + ")");
  }
  return kFirstSharedAddress + static_cast<std::uint32_t>(offset);
}

void check_shared_bounds(const void* address, std::size_t bytes, const char* instruction, Site site) {
  Engine& e = engine;
  const auto offset = static_cast<std::intptr_t>(reinterpret_cast<std::uintptr_t>(address) -
                                                 reinterpret_cast<std::uintptr_t>(e.shared));
  if (offset >= 0 && static_cast<std::size_t>(offset) + bytes <= e.shared_bytes) return;
  const bool near = !e.memory.owns(address) && offset > -static_cast<std::intptr_t>(Engine::kSharedArena) &&
                    offset < static_cast<std::intptr_t>(2 * Engine::kSharedArena);
  e.fail(kErrorIllegalAddress,
         e.who() + ": " + instruction + " at " + e.place(site) + ": " + std::to_string(bytes) + " bytes at " +
             (near ? "shared memory " + std::string(offset < 0 ? "- " : "+ ") + std::to_string(std::abs(offset)) +
                         ", but the block has " + std::to_string(e.shared_bytes) + " bytes"
                   : "an address that is not shared memory (" + e.memory.describe(address) + ")"));
}

void check_shared_race(const void* address, std::size_t bytes, Access access, const char* instruction, Site site) {
  Engine& e = engine;
  const auto offset = static_cast<std::uintptr_t>(static_cast<const std::byte*>(address) - e.shared);
  const RaceChecker::Conflict found =
      e.race.access(e.current->number, Space::shared, offset, bytes, access, site, instruction);
  if (found.text.empty()) return;
  e.fail(kErrorLaunchFailure,
         "race: " + e.who() + ": " + found.text + "; shared memory + " + std::to_string(found.address));
}

void check_shared_slowly(const void* address, std::size_t bytes, Access access, const char* instruction, Site site) {
  Engine& e = engine;
  check_shared_bounds(address, bytes, instruction, site);
  const auto offset = static_cast<std::uintptr_t>(static_cast<const std::byte*>(address) - e.shared);
  if (offset % bytes != 0) {
    e.fail(kErrorMisalignedAddress, e.who() + ": " + instruction + " at " + e.place(site) + ": shared memory + " +
                                        std::to_string(offset) + " is not aligned to its " + std::to_string(bytes) +
                                        " bytes");
  }
  const Thread& me = *e.current;
  e.announced = {&me, reinterpret_cast<std::uintptr_t>(address), bytes, access};
  if (e.settings.race) check_shared_race(address, bytes, access, instruction, site);
  if (e.settings.count) {
    e.counters.access(me.warp->number, me.lane, me.warp->live, false, offset, bytes, site,
                      access == Access::copy ? "cp_async shared" : instruction);
  }
}

const Allocation* check_global_bounds(const void* address, std::size_t bytes, const char* instruction, Site site) {
  Engine& e = engine;
  const Allocation* allocation = e.memory.find(address, bytes);
  if (allocation != nullptr) return allocation;
  e.fail(kErrorIllegalAddress, e.who() + ": " + instruction + " at " + e.place(site) + ": " + std::to_string(bytes) +
                                   " bytes at " + e.memory.describe(address));
}

void check_global_race(const void* address, std::size_t bytes, Access access, const char* instruction, Site site) {
  Engine& e = engine;
  const RaceChecker::Conflict found = e.race.access(
      e.current->number, Space::global, reinterpret_cast<std::uintptr_t>(address), bytes, access, site, instruction);
  if (found.text.empty()) return;
  const auto* byte =
      static_cast<const std::byte*>(address) + (found.address - reinterpret_cast<std::uintptr_t>(address));
  e.fail(kErrorLaunchFailure, "race: " + e.who() + ": " + found.text + "; " + e.memory.describe(byte));
}

void check_global_slowly(const void* address, std::size_t bytes, Access access, const char* instruction, Site site) {
  Engine& e = engine;
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  const Allocation* allocation = check_global_bounds(address, bytes, instruction, site);
  if (value % bytes != 0) {
    e.fail(kErrorMisalignedAddress, e.who() + ": " + instruction + " at " + e.place(site) + ": " +
                                        e.memory.describe(address) + " is not aligned to " + std::to_string(bytes) +
                                        " bytes");
  }
  if (range_cache.version != e.memory.version()) {
    range_cache = RangeCache();
    range_cache.version = e.memory.version();
  }
  range_cache.entries[value / 4096 % RangeCache::kEntries] = *allocation;
  const Thread& me = *e.current;
  e.announced = {&me, value, bytes, access};
  if (e.settings.race && access != Access::copy) check_global_race(address, bytes, access, instruction, site);
  if (!e.settings.count) return;
  e.counters.access(me.warp->number, me.lane, me.warp->live, true, value, bytes, site, instruction);
  if (access != Access::write) e.count_read(*allocation, value, bytes);
}

// ---- Approximate instructions

float perturbed(double exact, double bound, std::uint32_t instruction, float operand) {
  std::uint64_t x = engine.settings.error_seed * 0x9E3779B97F4A7C15 + (std::uint64_t{instruction} << 32) +
                    std::bit_cast<std::uint32_t>(operand);
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  x ^= x >> 31;
  const double within = static_cast<double>(static_cast<std::int64_t>(x)) * 0x1p-63;  // -1..1
  return static_cast<float>(exact * (1 + within * bound));
}

}  // namespace sorot::inline v0::emulator
