#include "tests/support/schedules.h"

namespace sorot::support {
namespace {

/// The emulator takes a quarter of a second and more for such a call.
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
    const auto add = [&](const char* name, std::size_t like, emulator::Order order, std::uint64_t seed, bool race) {
      emulator::Settings settings = set;
      settings.order = order;
      settings.seed = seed;
      settings.race = race;
      list.push_back({name, like, settings});
    };
    // The seed also chooses the errors of approximate instructions: results agree where it is the same.
    using emulator::Order;
    if (is_large(args)) {
      add("random order", 0, Order::random, set.seed, false);
      return list;
    }
    add("forward order", 0, Order::forward, set.seed, false);
    add("reverse order, watched for races", 0, Order::reverse, set.seed, true);
    add("random order", 0, Order::random, set.seed, false);
    add("forward order, other seed", list.size(), Order::forward, set.seed + 1, false);
    add("random order, other seed", list.size() - 1, Order::random, set.seed + 1, false);
  }
  return list;
}

}  // namespace sorot::support
