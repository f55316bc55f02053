#include "cuda/emulator/race.h"

#include <algorithm>
#include <iterator>

namespace sorot::inline v0::emulator {
namespace {

void join(Clock& into, const Clock& from) {
  into.resize(std::max(into.size(), from.size()), 0);
  for (std::size_t t = 0; t < from.size(); ++t) into[t] = std::max(into[t], from[t]);
}

}  // namespace

void RaceChecker::begin_launch() {
  global_.forget();
  blocks_.clear();
  clocks_.clear();
  published_.clear();
  sources_.assign(1, Source{{}, ""});
  std::fill(std::begin(recent_), std::end(recent_), std::uint16_t{0});
}

void RaceChecker::begin_block(machine::Index3 block, unsigned threads) {
  std::uint32_t latest = 0;
  for (std::size_t t = 0; t < clocks_.size(); ++t) latest = std::max(latest, clocks_[t][t]);
  blocks_.push_back({latest + 1, block});
  clocks_.assign(threads, Clock(threads, 0));
  for (unsigned t = 0; t < threads; ++t) clocks_[t][t] = latest + 1;
  fenced_.assign(threads, Clock());
  any_fence_ = false;
  others_.clear();
  shared_.forget();
}

std::uint16_t RaceChecker::source_of(machine::Site site, const char* instruction) {
  const auto is_it = [&](const Source& known) {
    return known.site.line == site.line && known.site.file == site.file && known.instruction == instruction;
  };
  std::uint16_t& recent = recent_[static_cast<std::size_t>(site.line) % kRecent];
  if (is_it(sources_[recent])) return recent;
  auto found = std::find_if(sources_.begin(), sources_.end(), is_it);
  if (found == sources_.end() && sources_.size() < 0xFFFF) found = sources_.insert(found, {site, instruction});
  recent = found == sources_.end() ? std::uint16_t{0} : static_cast<std::uint16_t>(found - sources_.begin());
  return recent;
}

// ---- Who knows what of whom

const RaceChecker::Block& RaceChecker::block_of(const Event& event) const {
  const auto later = [](std::uint32_t time, const Block& block) { return time < block.first_time; };
  return *std::prev(std::upper_bound(blocks_.begin(), blocks_.end(), event.time, later));
}

bool RaceChecker::known_of_another_block(const Event& event) const {
  const auto known = others_.find(block_of(event).first_time);
  return known != others_.end() && event.thread < known->second.size() && event.time <= known->second[event.thread];
}

void RaceChecker::release(unsigned thread, Clock& barrier) {
  Clock& mine = clocks_[thread];
  join(barrier, mine);
  ++mine[thread];
}

void RaceChecker::acquire(unsigned thread, const Clock& barrier) { join(clocks_[thread], barrier); }

void RaceChecker::fence(unsigned thread) {
  Clock& mine = clocks_[thread];
  fenced_[thread] = mine;
  any_fence_ = true;
  ++mine[thread];
}

/// An atomic on a word of global memory: the thread learns what others left there, and leaves what it has fenced, or
/// others have that it met in a barrier since.
void RaceChecker::synchronize(unsigned thread, std::uintptr_t word) {
  const std::uint32_t this_block = blocks_.back().first_time;
  const auto found = published_.find(word);
  if (found != published_.end()) {
    for (const auto& [block, clock] : found->second) {
      join(block == this_block ? clocks_[thread] : others_[block], clock);
    }
  }
  if (!any_fence_) return;
  Knowledge& left = published_[word];
  for (const auto& [block, clock] : others_) join(left[block], clock);
  Clock fenced = fenced_[thread];
  fenced.resize(clocks_.size(), 0);
  for (std::size_t t = 0; t < fenced.size(); ++t) {
    if (!fenced_[t].empty()) fenced[t] = std::max(fenced[t], std::min(fenced_[t][t], clocks_[thread][t]));
  }
  join(left[this_block], fenced);
}

// ---- Accesses

RaceChecker::Conflict RaceChecker::access(unsigned thread, Space space, std::uintptr_t address, std::size_t bytes,
                                          Access kind, machine::Site site, const char* instruction) {
  const bool global = space == Space::global;
  if (global && kind == Access::atomic) synchronize(thread, address);
  const Event event{clocks_[thread][thread], static_cast<std::uint16_t>(thread), source_of(site, instruction)};
  Conflict found;
  (global ? global_ : shared_).visit(address, bytes, [&](Cell& cell, std::uintptr_t at) {
    found = {access_cell(cell, event, kind), at};
    return found.text.empty();
  });
  return found;
}

std::string RaceChecker::access_cell(Cell& cell, const Event& event, Access kind) {
  const bool both_atomic = kind == Access::atomic && cell.atomic;
  if (cell.in_flight) {
    return name(event) + " touches a copy in flight, " + name(cell.write) + " by thread " +
           std::to_string(cell.write.thread) + ", which has not waited for it";
  }
  if (!both_atomic && !ordered(cell.write, event.thread)) return conflict(event, cell.write);
  if (kind == Access::read) {
    std::size_t slot = 0;
    while (slot < cell.readers && !ordered(cell.reads[slot], event.thread)) ++slot;
    // The first reader stays: if it is of another block, every later write conflicts with it.
    if (slot == kReaders) slot = 1 + event.thread % (kReaders - 1);
    cell.readers = static_cast<std::uint8_t>(std::max<std::size_t>(cell.readers, slot + 1));
    cell.reads[slot] = event;
    return "";
  }
  for (std::size_t slot = 0; slot < cell.readers; ++slot) {
    if (!ordered(cell.reads[slot], event.thread)) return conflict(event, cell.reads[slot]);
  }
  cell.readers = 0;
  cell.write = event;
  cell.atomic = kind == Access::atomic;
  cell.in_flight = kind == Access::copy;
  return "";
}

void RaceChecker::finish_copy(unsigned thread, std::uintptr_t shared_address, std::size_t bytes) {
  shared_.visit(shared_address, bytes, [&](Cell& cell, std::uintptr_t) {
    cell.in_flight = false;
    cell.write.time = clocks_[thread][thread];
    return true;
  });
}

// ---- In words

std::string RaceChecker::name(const Event& event) const {
  const Source& source = sources_[event.source];
  return std::string(source.instruction) + " at " + source.site.file_name() + ":" + std::to_string(source.site.line);
}

std::string RaceChecker::conflict(const Event& event, const Event& earlier) const {
  const std::string then = name(earlier) + " by thread " + std::to_string(earlier.thread);
  if (earlier.time < blocks_.back().first_time) {
    const machine::Index3 index = block_of(earlier).index;
    return name(event) + " is not ordered after " + then + " of block (" + std::to_string(index.x) + ", " +
           std::to_string(index.y) + ", " + std::to_string(index.z) + "): blocks of a launch run in any order";
  }
  return name(event) + " is not ordered after " + then + ": no barrier between them";
}

}  // namespace sorot::inline v0::emulator
