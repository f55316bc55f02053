#include "cuda/emulator/device.h"

namespace sorot::inline v0::emulator {

void plain_access(const void* address, std::size_t bytes, bool write, const void* code, Site (*locate)(const void*)) {
  Engine& e = engine;
  if (!e.running() || !e.settings.race) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const bool shared = begin - reinterpret_cast<std::uintptr_t>(e.shared) < Engine::kSharedArena;
  if (!shared && !e.memory.owns(address)) return;
  const Engine::Announced& told = e.announced;
  const bool is_it = told.thread == e.current && begin >= told.begin && begin + bytes <= told.begin + told.bytes;
  if (is_it && (!write || told.access != Access::read)) return;

  const char* instruction = write ? "plain store" : "plain load";
  const Access access = write ? Access::write : Access::read;
  const Site site = locate(code);
  try {
    if (shared) {
      check_shared_bounds(address, bytes, instruction, site);
      check_shared_race(address, bytes, access, instruction, site);
    } else {
      check_global_bounds(address, bytes, instruction, site);
      check_global_race(address, bytes, access, instruction, site);
    }
  } catch (const Failure& failure) {
    e.stop(failure);  // compilers take it that such calls throw nothing
  }
}

}  // namespace sorot::inline v0::emulator
