#pragma once

#include <functional>
#include <vector>

#include "sorot/attention.h"

namespace sorot::support {

/// A mistake a caller can make in args that were right. Each must be refused with kInvalidArgument on every device.
struct InvalidArgs {
  const char* what;
  /// False if these args offer no place for it (an absent tensor, an empty problem).
  std::function<bool(AttentionArgs&)> apply;
};

const std::vector<InvalidArgs>& invalid_args();

}  // namespace sorot::support
