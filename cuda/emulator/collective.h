#pragma once

#include <bit>
#include <cstring>
#include <string>

#include "cuda/emulator/engine.h"

/// What the lanes of a warp do together: the part that all such instructions have in common.
namespace sorot::inline v0::emulator {

inline bool same_text(const char* a, const char* b) { return a == b || std::strcmp(a, b) == 0; }

inline bool same_line(Site a, Site b) { return a.line == b.line && same_text(a.file, b.file); }

/// Runs `execute` once all lanes of the mask have come; each lane brings a pointer to what it has.
template <class Execute>
void collective(const char* instruction, unsigned mask, void* argument, Site site, Execute execute) {
  Engine& e = engine;
  Thread& me = *e.current;
  Warp& warp = *me.warp;
  const unsigned bit = 1U << me.lane;
  if ((mask & bit) == 0) {
    e.fail(kErrorLaunchFailure, e.who() + " is not in the mask of its " + instruction + " at " + e.place(site));
  }
  if ((mask & ~warp.live) != 0) {
    e.fail(kErrorLaunchFailure, e.who() + ": " + instruction + " at " + e.place(site) + " names lane " +
                                    std::to_string(std::countr_zero(mask & ~warp.live)) +
                                    " in its mask, which has exited or never was");
  }
  Collective* mine = nullptr;
  for (Collective& open : warp.open) {
    if (open.mask == mask && same_text(open.instruction, instruction) && (open.arrived & bit) == 0) mine = &open;
  }
  if (mine == nullptr) {
    warp.open.emplace_back();
    mine = &warp.open.back();
    mine->mask = mask;
    mine->instruction = instruction;
    mine->site = site;
  } else if (!same_line(mine->site, site)) {
    e.fail(kErrorLaunchFailure, "divergent warp: " + e.who() + " executes " + instruction + " at " + e.place(site) +
                                    ", while other lanes of its mask execute it at " + e.place(mine->site));
  }
  mine->arrived |= bit;
  mine->arguments[me.lane] = argument;
  if (mine->arrived != mask) {
    e.wait(instruction, site);
    return;
  }
  ++e.progress;
  Collective whole = *mine;
  *mine = warp.open.back();
  warp.open.pop_back();
  execute(whole.arguments);
  for (unsigned others = mask & ~bit; others != 0; others &= others - 1) {
    e.make_ready(*warp.lanes[std::countr_zero(others)]);
  }
}

}  // namespace sorot::inline v0::emulator
