#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/machine/site.h"

/// Finds accesses to shared memory that nothing orders, whatever order the threads happened to run in: a vector clock a
/// thread, and for every byte who wrote it last and who read it since (after FastTrack, Flanagan and Freund 2009).
/// Only barriers order memory; shuffles and votes do not.
namespace sorot::inline v0::emulator {

using Clock = std::vector<std::uint32_t>;  ///< for every thread of the block, how far it is known to have come

/// A copy is an asynchronous one that begins: it reads global memory and writes shared memory, until it is waited for.
enum class Access : std::uint8_t { read, write, atomic, copy };

class RaceChecker {
 public:
  /// A new block.
  void reset(unsigned threads, std::size_t shared_bytes);

  /// What conflicts with this access, in words; empty if nothing does.
  std::string access(unsigned thread, std::size_t offset, std::size_t bytes, Access kind, machine::Site site,
                     const char* instruction);

  /// A thread comes to a barrier with all it has done, and leaves one with all that came there.
  void release(unsigned thread, Clock& barrier);
  void acquire(unsigned thread, const Clock& barrier);

 private:
  struct Event {
    std::uint32_t time = 0;  ///< on the thread's own clock; 0: none
    std::uint16_t thread = 0;
    std::uint16_t source = 0;  ///< index into sources_
  };
  struct Source {
    machine::Site site;
    const char* instruction;
  };
  static constexpr std::size_t kReaders = 8;  ///< remembered a byte; a ninth replaces one, so a race can be missed
  struct Cell {
    Event write;
    bool atomic = false;
    std::uint8_t readers = 0;
    Event reads[kReaders];
  };

  /// A word of 4 bytes has one cell, until somebody accesses a part of it: then each of its bytes has one.
  static constexpr std::size_t kWord = 4;

  std::string access_cell(Cell& cell, std::size_t byte, const Event& event, Access kind);
  std::size_t split(std::size_t word);

  bool ordered(const Event& event, unsigned thread) const {
    return event.time == 0 || event.thread == thread || event.time <= clocks_[thread][event.thread];
  }
  std::uint16_t source_of(machine::Site site, const char* instruction);
  std::string conflict(std::size_t byte, const Event& event, const Event& earlier) const;

  std::vector<Clock> clocks_;
  std::vector<Cell> words_;
  std::vector<std::uint32_t> split_;  ///< of every word, where its 4 cells are in bytes_; 0: nowhere
  std::vector<Cell> bytes_;
  std::vector<Source> sources_;
  static constexpr std::size_t kRecent = 64;
  std::uint16_t recent_[kRecent] = {};  ///< sources by line
};

}  // namespace sorot::inline v0::emulator
