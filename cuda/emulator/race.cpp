#include "cuda/emulator/race.h"

#include <algorithm>
#include <iterator>

namespace sorot::inline v0::emulator {

void RaceChecker::reset(unsigned threads, std::size_t shared_bytes) {
  clocks_.assign(threads, Clock(threads, 0));
  for (unsigned t = 0; t < threads; ++t) clocks_[t][t] = 1;
  const std::size_t words = (shared_bytes + kWord - 1) / kWord;
  words_.assign(words, Cell());
  split_.assign(words, 0);
  bytes_.assign(kWord, Cell());  // place 0 is nowhere
  sources_.assign(1, Source{{}, ""});
  std::fill(std::begin(recent_), std::end(recent_), std::uint16_t{0});
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

std::string RaceChecker::conflict(std::size_t byte, const Event& event, const Event& earlier) const {
  const Source& now = sources_[event.source];
  const Source& then = sources_[earlier.source];
  return std::string(now.instruction) + " at " + now.site.file_name() + ":" + std::to_string(now.site.line) +
         " is not ordered after " + then.instruction + " at " + then.site.file_name() + ":" +
         std::to_string(then.site.line) + " by thread " + std::to_string(earlier.thread) +
         ": no barrier between them; shared memory + " + std::to_string(byte);
}

/// Where the cells of a word's bytes are; they begin as the word was.
std::size_t RaceChecker::split(std::size_t word) {
  if (split_[word] == 0) {
    split_[word] = static_cast<std::uint32_t>(bytes_.size());
    bytes_.insert(bytes_.end(), kWord, words_[word]);
  }
  return split_[word];
}

std::string RaceChecker::access(unsigned thread, std::size_t offset, std::size_t bytes, Access kind, machine::Site site,
                                const char* instruction) {
  const Event event{clocks_[thread][thread], static_cast<std::uint16_t>(thread), source_of(site, instruction)};
  for (std::size_t word = offset / kWord; word * kWord < offset + bytes; ++word) {
    const bool whole = word * kWord >= offset && (word + 1) * kWord <= offset + bytes;
    if (whole && split_[word] == 0) {
      std::string problem = access_cell(words_[word], word * kWord, event, kind);
      if (!problem.empty()) return problem;
      continue;
    }
    const std::size_t cells = split(word);
    for (std::size_t b = 0; b < kWord; ++b) {
      const std::size_t byte = word * kWord + b;
      if (byte < offset || byte >= offset + bytes) continue;
      std::string problem = access_cell(bytes_[cells + b], byte, event, kind);
      if (!problem.empty()) return problem;
    }
  }
  return "";
}

std::string RaceChecker::access_cell(Cell& cell, std::size_t byte, const Event& event, Access kind) {
  const bool both_atomic = kind == Access::atomic && cell.atomic;
  if (!both_atomic && !ordered(cell.write, event.thread)) return conflict(byte, event, cell.write);
  if (kind == Access::read) {
    std::size_t slot = 0;
    while (slot < cell.readers && !ordered(cell.reads[slot], event.thread)) ++slot;
    if (slot == kReaders) slot = event.thread % kReaders;
    cell.readers = static_cast<std::uint8_t>(std::max<std::size_t>(cell.readers, slot + 1));
    cell.reads[slot] = event;
    return "";
  }
  for (std::size_t slot = 0; slot < cell.readers; ++slot) {
    if (!ordered(cell.reads[slot], event.thread)) return conflict(byte, event, cell.reads[slot]);
  }
  cell.readers = 0;
  cell.write = event;
  cell.atomic = kind == Access::atomic;
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
