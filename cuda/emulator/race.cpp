#include "cuda/emulator/race.h"

#include <algorithm>
#include <cstring>

namespace sorot::inline v0::emulator {

void RaceChecker::reset(unsigned threads, std::size_t shared_bytes) {
  clocks_.assign(threads, Clock(threads, 0));
  for (unsigned t = 0; t < threads; ++t) clocks_[t][t] = 1;
  cells_.assign(shared_bytes, Cell());
  sources_.clear();
}

std::uint16_t RaceChecker::source_of(machine::Site site, const char* instruction) {
  for (std::size_t n = sources_.size(); n-- > 0;) {
    const Source& known = sources_[n];
    if (known.site.line == site.line && known.site.file == site.file && known.instruction == instruction) {
      return static_cast<std::uint16_t>(n);
    }
  }
  if (sources_.size() < 0xFFFF) sources_.push_back({site, instruction});
  return static_cast<std::uint16_t>(sources_.size() - 1);
}

std::string RaceChecker::conflict(std::size_t byte, machine::Site site, const char* instruction,
                                  const Event& earlier) const {
  const Source& other = sources_[earlier.source];
  return std::string(instruction) + " at " + site.file_name() + ":" + std::to_string(site.line) +
         " is not ordered after " + other.instruction + " at " + other.site.file_name() + ":" +
         std::to_string(other.site.line) + " by thread " + std::to_string(earlier.thread) +
         ": no barrier between them; shared memory + " + std::to_string(byte);
}

std::string RaceChecker::access(unsigned thread, std::size_t offset, std::size_t bytes, Access kind, machine::Site site,
                                const char* instruction) {
  const Event event{clocks_[thread][thread], static_cast<std::uint16_t>(thread), source_of(site, instruction)};
  for (std::size_t byte = offset; byte < offset + bytes; ++byte) {
    Cell& cell = cells_[byte];
    const bool both_atomic = kind == Access::atomic && cell.atomic;
    if (!both_atomic && !ordered(cell.write, thread)) return conflict(byte, site, instruction, cell.write);
    if (kind == Access::read) {
      std::size_t slot = 0;
      while (slot < cell.readers && !ordered(cell.reads[slot], thread)) ++slot;
      if (slot == kReaders) slot = thread % kReaders;
      cell.readers = static_cast<std::uint8_t>(std::max<std::size_t>(cell.readers, slot + 1));
      cell.reads[slot] = event;
      continue;
    }
    for (std::size_t slot = 0; slot < cell.readers; ++slot) {
      if (!ordered(cell.reads[slot], thread)) return conflict(byte, site, instruction, cell.reads[slot]);
    }
    cell.readers = 0;
    cell.write = event;
    cell.atomic = kind == Access::atomic;
  }
  return "";
}

void RaceChecker::release(unsigned thread, Clock& barrier) {
  Clock& mine = clocks_[thread];
  barrier.resize(mine.size(), 0);
  for (std::size_t t = 0; t < mine.size(); ++t) barrier[t] = std::max(barrier[t], mine[t]);
  ++mine[thread];
}

void RaceChecker::acquire(unsigned thread, const Clock& barrier) {
  Clock& mine = clocks_[thread];
  for (std::size_t t = 0; t < mine.size(); ++t) mine[t] = std::max(mine[t], barrier[t]);
}

}  // namespace sorot::inline v0::emulator
