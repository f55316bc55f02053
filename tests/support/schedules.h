#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cuda/emulator/control.h"
#include "tests/support/device.h"

/// Results may not depend on which thread or block runs first: calls are repeated in other orders, where a device has
/// orders to choose from.
namespace sorot::support {

struct Schedule {
  std::string name;      ///< "reverse order"; empty for a device that knows none
  std::size_t like = 0;  ///< the earlier schedule with whose results these agree bit for bit
  emulator::Settings settings;
};

/// The emulator as it is set, then forward, reverse and two random orders, one of them watched for races. All on the
/// device profile that is set. Elsewhere a single schedule, which is none.
std::vector<Schedule> schedules(const Device& device);

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
