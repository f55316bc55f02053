#include "tests/support/schedules.h"

namespace sorot::support {
namespace {

/// The emulator takes seconds to watch such a call for races.
[[maybe_unused]] bool is_large(const AttentionArgs& args) {
  constexpr std::int64_t kLargest = 50'000;
  const std::int64_t rows = args.q.shape[0] * args.q.shape[1] * args.q.shape[2];
  return rows * (args.k.shape[2] + 64) > kLargest;
}

}  // namespace

std::vector<Schedule> schedules(const Device& device, const AttentionArgs& args) {
  std::vector<Schedule> list(1);
  if constexpr (kEmulated) {
    if (device.on_host()) return list;
    const emulator::Settings set = emulator::settings();
    const auto add = [&](const char* name, emulator::Order order, std::uint64_t seed, bool race = false) {
      emulator::Settings settings = set;
      settings.order = order;
      settings.seed = seed;
      settings.race = race;
      list.push_back({name, settings});
    };
    using emulator::Order;
    add("random order", Order::random, set.seed + 1);
    add("another random order", Order::random, set.seed + 2);
    if (set.order != Order::forward) add("forward order", Order::forward, 0);
    add("reverse order", Order::reverse, 0, !is_large(args));
  }
  return list;
}

std::string report_of_races([[maybe_unused]] const Device& device, [[maybe_unused]] const emulator::Settings& settings,
                            [[maybe_unused]] const std::function<Status()>& call) {
  if constexpr (kEmulated) {
    if (device.on_host()) return "";
    emulator::Settings watching = settings;
    watching.race = true;
    const emulator::Scoped scoped(watching);
    const Status status = call();
    if (status.code() == StatusCode::kDeviceError) return whole_message(status);
  }
  return "";
}

}  // namespace sorot::support
