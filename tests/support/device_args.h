#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sorot/attention.h"
#include "tests/support/device.h"

namespace sorot::support {

/// Sound args whose tensors lie in host memory, as a device takes them.
///
/// A device on the host takes them as they are. Others get copies: one allocation for each range of bytes that tensors
/// occupy, where overlapping ranges are one (packed q, k, v share a buffer). It begins at the host's address modulo
/// 256, so that alignment stays what it was, and holds not a byte more behind the range.
class DeviceArgs {
 public:
  DeviceArgs(const Device& device, const AttentionArgs& host);

  const AttentionArgs& args() const { return args_; }

  /// Copies again what the host's tensors hold, outputs included: bytes between their elements are not for a call.
  void copy_in();

  /// The bytes of all outputs as the device has them now, gaps included; nothing for a device on the host.
  std::vector<std::byte> outputs() const;

  /// Copies the outputs to the host; then says which other bytes a call has changed, empty if none.
  std::string copy_back();

 private:
  struct Range {
    const std::byte* begin;  ///< on the host
    std::size_t bytes;
    bool output;
    std::string names;  ///< of the tensors: "q, k, v"
    std::size_t lead;   ///< bytes in front of it on the device
    DeviceMemory memory;
  };

  AttentionArgs args_;
  std::vector<Range> ranges_;  ///< none on the host
};

/// Runs a plan on args in host memory, with a workspace of its own, under every schedule of the device. The Status of
/// the first call that failed; kInternal if a call changed what is not its own or schedules disagree.
Status run_plan(const Device& device, const AttentionPlan& plan, const AttentionArgs& args);

}  // namespace sorot::support
