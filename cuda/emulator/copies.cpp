#include <algorithm>
#include <cstring>
#include <optional>

#include "cuda/emulator/device.h"

/// Asynchronous copies from global to shared memory. When one lands is for Settings::copies to say; nobody may look at
/// it before the thread that asked for it has waited.
namespace sorot::inline v0::emulator {
namespace {

constexpr std::size_t kBytes = 16;

/// Whether a copy lands as it is asked for.
bool lands_at_once() {
  const Settings& settings = engine.settings;
  switch (settings.copies.value_or(copies_of(settings.order))) {
    case Copies::eager: return true;
    case Copies::lazy: return false;
    case Copies::random: break;
  }
  return engine.random() % 2 == 0;
}

void land(const AsyncCopy& copy) {
  if (copy.from != nullptr) {
    std::memcpy(copy.to, copy.from, kBytes);
  } else {
    std::memset(copy.to, 0, kBytes);
  }
}

}  // namespace

void cp_async(std::uint32_t to, const void* from, bool valid, Site site) {
  need_architecture(80, "cp_async", site);
  std::byte* const target = at_shared_address(to);
  check_shared(target, kBytes, Access::copy, "cp_async", site);
  Thread& me = *engine.current;
  if (valid) {
    check_global(from, kBytes, Access::copy, "cp_async", site);
  } else if (engine.settings.count) {
    engine.counters.access(me.warp->number, me.lane, me.warp->live, true, std::nullopt, kBytes, site, "cp_async");
  }
  AsyncCopy copy{target, valid ? from : nullptr, me.committed, lands_at_once(), site};
  if (copy.landed) {
    land(copy);
  } else {
    std::memset(target, kPoison, kBytes);
  }
  me.copies.push_back(copy);
}

void cp_async_commit(Site site) {
  need_architecture(80, "cp_async_commit", site);
  ++engine.current->committed;
}

void cp_async_wait(unsigned pending, Site site) {
  Engine& e = engine;
  Thread& me = *e.current;
  const unsigned done = me.committed > pending ? me.committed - pending : 0;
  const auto end =
      std::find_if(me.copies.begin(), me.copies.end(), [&](const AsyncCopy& copy) { return copy.group >= done; });
  // A copy that has not landed by now reads as late as it may: after all that others do in the meantime.
  if (std::any_of(me.copies.begin(), end, [](const AsyncCopy& copy) { return !copy.landed; }))
    e.yield("cp_async_wait", site);
  for (auto copy = me.copies.begin(); copy != end; ++copy) {
    if (!copy->landed) land(*copy);
    if (!e.settings.race) continue;
    e.race.finish_copy(me.number, static_cast<std::uintptr_t>(copy->to - e.shared), kBytes);
    if (copy->from != nullptr) check_global_race(copy->from, kBytes, Access::read, "cp_async", copy->site);
  }
  me.copies.erase(me.copies.begin(), end);
}

}  // namespace sorot::inline v0::emulator
