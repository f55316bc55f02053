#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace sorot::inline v0::emulator {

/// What is remembered of memory that was accessed. A word of 4 bytes has one cell, until somebody accesses a part of
/// it: then each of its bytes has one. What nobody accesses costs nothing, so that any range of addresses will do.
template <class Cell>
class Shadow {
 public:
  void forget() {
    lines_.clear();
    cells_.clear();
    recent_.fill({});
  }

  /// Calls visit(cell, address of its first byte) for all cells of a range, until it returns false.
  template <class Visit>
  void visit(std::uintptr_t address, std::size_t bytes, Visit visit) {
    const std::uintptr_t end = address + bytes;
    for (std::uintptr_t word = address / kWord; word * kWord < end; ++word) {
      const bool whole = word * kWord >= address && (word + 1) * kWord <= end;
      Place& place = place_of(word);
      if (place.cell == kNowhere) {
        place.cell = static_cast<std::uint32_t>(cells_.size());
        cells_.emplace_back();
      }
      if (!whole && !place.split) split(place);
      if (!place.split) {
        if (!visit(cells_[place.cell], word * kWord)) return;
        continue;
      }
      for (std::size_t b = 0; b < kWord; ++b) {
        const std::uintptr_t byte = word * kWord + b;
        if (byte >= address && byte < end && !visit(cells_[place.cell + b], byte)) return;
      }
    }
  }

 private:
  static constexpr std::uintptr_t kWord = 4;
  static constexpr std::uintptr_t kLineWords = 64;
  static constexpr std::uint32_t kNowhere = 0xFFFF'FFFF;

  struct Place {
    std::uint32_t cell = kNowhere;  ///< in cells_
    bool split = false;             ///< into 4 cells from there on
  };
  using Line = std::array<Place, kLineWords>;
  struct Recent {
    std::uintptr_t number = 0;
    Line* line = nullptr;
  };

  Place& place_of(std::uintptr_t word) {
    const std::uintptr_t number = word / kLineWords;
    Recent& recent = recent_[number % recent_.size()];
    if (recent.line == nullptr || recent.number != number) recent = {number, &lines_[number]};
    return (*recent.line)[word % kLineWords];
  }

  /// The bytes begin as the word was.
  void split(Place& place) {
    const Cell word = cells_[place.cell];
    place.cell = static_cast<std::uint32_t>(cells_.size());
    place.split = true;
    cells_.insert(cells_.end(), kWord, word);
  }

  std::unordered_map<std::uintptr_t, Line> lines_;
  std::vector<Cell> cells_;
  std::array<Recent, 256> recent_ = {};
};

}  // namespace sorot::inline v0::emulator
