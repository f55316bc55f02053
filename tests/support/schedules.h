#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cuda/emulator/control.h"
#include "sorot/attention.h"
#include "tests/support/device.h"

/// Results may not depend on which thread or block runs first: calls are repeated in other orders, where a device has
/// orders to choose from.
namespace sorot::support {

struct Schedule {
  std::string name;  ///< "reverse order"; empty for a device that knows none
  emulator::Settings settings;
};

/// The emulator as it is set, then two random orders, forward and reverse, all on the device profile that is set, and
/// asynchronous copies landing late, at once or either as goes with the order; in reverse the call is also watched for
/// races, unless it is large. Elsewhere a single schedule, which is none.
std::vector<Schedule> schedules(const Device& device, const AttentionArgs& args);

/// What the emulator, set like this, reports of a call that it watches for races, whatever the size of the call. Empty
/// if it finds nothing wrong, and on other devices.
std::string report_of_races(const Device& device, const emulator::Settings& settings,
                            const std::function<Status()>& call);

/// Calls under a schedule.
template <class Call>
auto under(const Schedule& schedule, Call call) {
  if constexpr (kEmulated) {
    if (!schedule.name.empty()) {
      const emulator::Scoped scoped(schedule.settings);
      return call();
    }
  }
  return call();
}

}  // namespace sorot::support
