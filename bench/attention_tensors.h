#pragma once

#include <random>

#include "bench/attention_case.h"
#include "bench/bench.h"

namespace sorot::bench {

/// The tensors of a case in a device's memory, with the args that name them.
class AttentionTensors {
 public:
  AttentionTensors(const Device& device, const AttentionCase& c)
      : q_(tensor(device, c, c.heads, c.queries)),
        k_(tensor(device, c, c.kv_heads, c.keys)),
        v_(tensor(device, c, c.kv_heads, c.keys)),
        out_(tensor(device, c, c.heads, c.queries)),
        args_(attention_args(c, q_.data(), k_.data(), v_.data(), out_.data())) {}

  const AttentionArgs& args() const { return args_; }

 private:
  DeviceMemory tensor(const Device& device, const AttentionCase& c, std::int64_t heads, std::int64_t rows) {
    return random_tensor(device, c.dtype, static_cast<std::size_t>(c.batch * heads * rows * c.dim), random_);
  }

  std::mt19937 random_{1};
  DeviceMemory q_, k_, v_, out_;
  AttentionArgs args_;
};

}  // namespace sorot::bench
