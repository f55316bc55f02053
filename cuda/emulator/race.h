#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "cuda/emulator/shadow.h"
#include "cuda/machine/site.h"
#include "cuda/machine/types.h"

/// Finds accesses to memory that nothing orders, whatever order the threads happened to run in: a vector clock a
/// thread, and for every byte who wrote it last and who read it since (after FastTrack, Flanagan and Freund 2009).
///
/// What orders: barriers, among the threads that meet there; shuffles and votes do not. And for global memory: what a
/// thread did before a fence_device comes before whatever any thread does after an atomic on a word, if after that
/// fence the first one, or a thread that met it in a barrier, did an atomic on that word. That is more than hardware
/// promises, in two ways: the second thread needs no fence, and the other threads of its block know what it knows.
/// Nothing else orders the blocks of a launch.
namespace sorot::inline v0::emulator {

using Clock = std::vector<std::uint32_t>;  ///< for every thread of the block, how far it is known to have come

/// A copy is an asynchronous one that begins: it reads global memory and writes shared memory, until it is waited for.
enum class Access : std::uint8_t { read, write, atomic, copy };

enum class Space : std::uint8_t { shared, global };

class RaceChecker {
 public:
  void begin_launch();
  void begin_block(machine::Index3 block, unsigned threads);

  /// What an access conflicts with, in words, and at which address; empty if nothing does.
  struct Conflict {
    std::string text;
    std::uintptr_t address = 0;
  };

  /// Addresses of shared memory count from its beginning.
  Conflict access(unsigned thread, Space space, std::uintptr_t address, std::size_t bytes, Access kind,
                  machine::Site site, const char* instruction);

  /// A copy has been waited for by the thread that asked for it: from now on it is a write of that thread.
  void finish_copy(unsigned thread, std::uintptr_t shared_address, std::size_t bytes);

  /// A thread comes to a barrier with all it has done, and leaves one with all that came there.
  void release(unsigned thread, Clock& barrier);
  void acquire(unsigned thread, const Clock& barrier);

  /// fence_device.
  void fence(unsigned thread);

 private:
  /// Times count on from block to block of a launch, so that a time says which block it is of.
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
    bool in_flight = false;  ///< the write is a copy that its thread has not waited for
    std::uint8_t readers = 0;
    Event reads[kReaders];
  };
  struct Block {
    std::uint32_t first_time;
    machine::Index3 index;
  };
  using Knowledge = std::map<std::uint32_t, Clock>;  ///< by first time of a block, how far its threads have come

  std::string access_cell(Cell& cell, const Event& event, Access kind);
  bool ordered(const Event& event, unsigned thread) const {
    if (event.time == 0) return true;
    if (event.time < blocks_.back().first_time) return !others_.empty() && known_of_another_block(event);
    return event.thread == thread || event.time <= clocks_[thread][event.thread];
  }
  bool known_of_another_block(const Event& event) const;
  const Block& block_of(const Event& event) const;
  void synchronize(unsigned thread, std::uintptr_t word);
  std::uint16_t source_of(machine::Site site, const char* instruction);
  std::string name(const Event& event) const;
  std::string conflict(const Event& event, const Event& earlier) const;

  Shadow<Cell> shared_;
  Shadow<Cell> global_;
  std::vector<Block> blocks_;  ///< that have begun
  std::vector<Clock> clocks_;
  std::vector<Clock> fenced_;  ///< of every thread, its clock at its last fence
  bool any_fence_ = false;
  Knowledge others_;                                         ///< what the block knows of those before it
  std::unordered_map<std::uintptr_t, Knowledge> published_;  ///< by word, through atomics
  std::vector<Source> sources_;
  static constexpr std::size_t kRecent = 64;
  std::uint16_t recent_[kRecent] = {};  ///< sources by line
};

}  // namespace sorot::inline v0::emulator
