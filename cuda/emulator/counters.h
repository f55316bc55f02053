#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "cuda/emulator/control.h"
#include "cuda/machine/site.h"

/// Counts memory traffic as the hardware bills it: 32-byte sectors of global memory, and wavefronts of shared memory,
/// which has 32 banks of 4 bytes. Exact for code that all lanes of a warp run alike.
namespace sorot::inline v0::emulator {

class Counters {
 public:
  void begin_kernel(const char* name) { kernel_ = name; }

  /// One lane's part of a request. `address` counts from a 128-byte boundary; none: the lane takes no part.
  void access(unsigned warp, unsigned lane, unsigned live_lanes, bool global, std::optional<std::uint64_t> address,
              std::size_t bytes, machine::Site site, const char* instruction);

  /// One of a warp that is no access to memory.
  void instruction(const char* name, machine::Site site);

  /// Requests in which some lanes took no part are complete when their block is.
  void end_block();

  std::vector<AccessCount> table() const;
  void clear();

 private:
  struct Request {
    std::uint32_t arrived = 0;  ///< lanes that came
    std::uint32_t lanes = 0;    ///< and take part
    std::uint64_t addresses[32] = {};
  };
  struct Place {
    const char* kernel;
    const char* instruction;
    machine::Site site;
    bool global;
    std::size_t bytes;  ///< a lane
  };
  using Total = AccessCount;

  std::size_t place_of(const Place& place);
  Total& total_of(const Place& place);
  void add(std::size_t index, const Request& request);  ///< of places_

  const char* kernel_ = "";  ///< static text, as a launch has it
  std::vector<Place> places_;
  std::unordered_map<std::uint64_t, std::uint32_t> visits_;  ///< by place, warp and lane: how often it was there
  std::unordered_map<std::uint64_t, Request> open_;          ///< by place, warp and visit
  std::map<std::tuple<std::string, std::string, int, std::string>, Total> totals_;
};

}  // namespace sorot::inline v0::emulator
