#include "cuda/emulator/control.h"

#include <numeric>
#include <stdexcept>

#include "cuda/emulator/report.h"
#include "cuda/emulator/stream.h"

namespace sorot::inline v0::emulator {
namespace {

std::string last;

using Lock = std::lock_guard<std::recursive_mutex>;

}  // namespace

Status status_of(const Failure& failure, const char* call, Site site) {
  if (!failure) return {};
  last = std::string(call) + " at " + engine.place(site) + ": " + failure.report;
  const bool memory = failure.code == kErrorMemoryAllocation;
  return {memory ? StatusCode::kOutOfMemory : StatusCode::kDeviceError, last.c_str(), failure.code};
}

const std::string& report() { return last; }

Settings settings() {
  const Lock lock(device_mutex());
  return engine.settings;
}

void apply(const Settings& settings) {
  if (find_profile(settings.profile) == nullptr) {
    std::string known;
    for (const int profile : kProfiles) known += (known.empty() ? "" : ", ") + std::to_string(profile);
    throw std::invalid_argument("profile is " + std::to_string(settings.profile) + ", expected one of " + known);
  }
  const Lock lock(device_mutex());
  engine.settings = settings;
}

std::vector<LaunchRecord> launches() {
  const Lock lock(device_mutex());
  return launch_records();
}

void clear_launches() {
  const Lock lock(device_mutex());
  clear_launch_records();
}

std::string last_report() {
  const Lock lock(device_mutex());
  return last;
}

std::vector<AccessCount> counts() {
  const Lock lock(device_mutex());
  return engine.counters.table();
}

void clear_counts() {
  const Lock lock(device_mutex());
  engine.counters.clear();
  engine.clear_reads();
  engine.switches = 0;
}

std::uint64_t switches() {
  const Lock lock(device_mutex());
  return engine.switches;
}

std::vector<std::uint32_t> reads_of(const void* device_memory, std::size_t bytes) {
  const Lock lock(device_mutex());
  return engine.reads(device_memory, bytes);
}

MemoryUse memory_use() {
  const Lock lock(device_mutex());
  const std::vector<Allocation>& all = engine.memory.allocations();
  const auto add = [](std::size_t sum, const Allocation& one) { return sum + one.bytes; };
  return {all.size(), std::accumulate(all.begin(), all.end(), std::size_t{0}, add)};
}

}  // namespace sorot::inline v0::emulator
