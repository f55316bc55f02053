#include "cuda/emulator/counters.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace sorot::inline v0::emulator {
namespace {

constexpr std::uint64_t kSector = 32;
constexpr std::uint64_t kBank = 4;
constexpr unsigned kBanks = 32;

/// Most different words that fall into one bank: each takes a wavefront of its own. Equal words are broadcast.
unsigned conflicts(std::vector<std::uint64_t>& words) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::array<unsigned, kBanks> load{};
  unsigned most = 0;
  for (const std::uint64_t word : words) most = std::max(most, ++load[word % kBanks]);
  return most;
}

/// Up to 4 bytes a lane a warp goes at once; 8 bytes go by half warps, 16 by quarters.
std::uint64_t wavefronts(std::uint32_t lanes, const std::uint64_t* addresses, std::size_t bytes) {
  const unsigned together = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
  std::uint64_t total = 0;
  std::vector<std::uint64_t> words;
  for (unsigned first = 0; first < 32; first += together) {
    words.clear();
    for (unsigned lane = first; lane < first + together; ++lane) {
      if ((lanes >> lane & 1) == 0) continue;
      for (std::uint64_t a = addresses[lane] / kBank; a <= (addresses[lane] + bytes - 1) / kBank; ++a)
        words.push_back(a);
    }
    total += conflicts(words);
  }
  return total;
}

/// As few as the same lanes could do with: phases that have a lane.
std::uint64_t fewest_wavefronts(std::uint32_t lanes, std::size_t bytes) {
  if (bytes <= 4) return lanes != 0 ? 1 : 0;
  const unsigned together = bytes == 8 ? 16 : 8;
  std::uint64_t phases = 0;
  for (unsigned first = 0; first < 32; first += together) {
    phases += (lanes >> first & ((1U << together) - 1)) != 0 ? 1U : 0U;
  }
  return phases;
}

/// All different sectors, and how few could have held the different bytes asked for.
struct Sectors {
  std::uint64_t touched, fewest;
};
Sectors sectors(std::uint32_t lanes, const std::uint64_t* addresses, std::size_t bytes) {
  std::vector<std::uint64_t> starts;
  std::vector<std::uint64_t> touched;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    starts.push_back(addresses[lane]);
    touched.push_back(addresses[lane] / kSector);
  }
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  return {touched.size(), (starts.size() * bytes + kSector - 1) / kSector};
}

}  // namespace

std::size_t Counters::place_of(const Place& place) {
  for (std::size_t n = places_.size(); n-- > 0;) {
    const Place& known = places_[n];
    if (known.site.line == place.site.line && known.bytes == place.bytes && known.global == place.global &&
        std::strcmp(known.instruction, place.instruction) == 0 && std::strcmp(known.site.file, place.site.file) == 0 &&
        std::strcmp(known.kernel, place.kernel) == 0) {
      return n;
    }
  }
  places_.push_back(place);
  return places_.size() - 1;
}

void Counters::access(unsigned warp, unsigned lane, unsigned live_lanes, bool global,
                      std::optional<std::uint64_t> address, std::size_t bytes, machine::Site site,
                      const char* instruction) {
  const std::size_t place = place_of({kernel_, instruction, site, global, bytes});
  const std::uint64_t key = static_cast<std::uint64_t>(place) << 16 | warp << 8;
  const std::uint32_t visit = visits_[key | lane]++;
  const std::uint64_t request_key = key << 24 | visit;
  Request& request = open_[request_key];
  request.arrived |= 1U << lane;
  if (address) {
    request.lanes |= 1U << lane;
    request.addresses[lane] = *address;
  }
  if (request.arrived != live_lanes) return;
  add(place, request);
  open_.erase(request_key);
}

Counters::Total& Counters::total_of(const Place& place) {
  Total& total = totals_[{place.kernel, place.site.file_name(), place.site.line, place.instruction}];
  if (total.requests == 0) {
    total.kernel = place.kernel;
    total.instruction = place.instruction;
    total.file = place.site.file_name();
    total.line = place.site.line;
  }
  return total;
}

void Counters::instruction(const char* name, machine::Site site) {
  ++total_of({kernel_, name, site, false, 0}).requests;
}

void Counters::add(std::size_t index, const Request& request) {
  if (request.lanes == 0) return;
  const Place& place = places_[index];
  Total& total = total_of(place);
  ++total.requests;
  total.bytes += static_cast<std::uint64_t>(std::popcount(request.lanes)) * place.bytes;
  if (place.global) {
    const Sectors s = sectors(request.lanes, request.addresses, place.bytes);
    total.transactions += s.touched;
    total.ideal_transactions += s.fewest;
  } else {
    total.transactions += wavefronts(request.lanes, request.addresses, place.bytes);
    total.ideal_transactions += fewest_wavefronts(request.lanes, place.bytes);
  }
}

void Counters::end_block() {
  for (const auto& [key, request] : open_) add(static_cast<std::size_t>(key >> 40), request);
  open_.clear();
  visits_.clear();
}

std::vector<AccessCount> Counters::table() const {
  std::vector<AccessCount> table;
  table.reserve(totals_.size());
  for (const auto& [key, total] : totals_) table.push_back(total);
  return table;
}

void Counters::clear() {
  places_.clear();
  visits_.clear();
  open_.clear();
  totals_.clear();
}

}  // namespace sorot::inline v0::emulator
