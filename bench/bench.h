#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "sorot/sorot.h"

/// What the benchmarks of all operators share.
namespace sorot::bench {

/// Memory for a tensor or a workspace, aligned as a workspace must be.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : storage_(bytes + kAlignment) {}
  void* data();

 private:
  static constexpr std::size_t kAlignment = 256;
  std::vector<std::byte> storage_;
};

/// Elements drawn from a normal distribution, like activations: subnormals and infinities would distort the time.
Buffer random_tensor(DType dtype, std::size_t elements, std::mt19937& random);

/// The DType of that name ("bf16"); std::invalid_argument if there is none a tensor of activations can have.
DType dtype_of(const std::string& name);

/// Names of the devices of this build that can be timed: those that compute in host memory, by a clock of the host.
std::vector<std::string> device_names();

/// A context for one of them.
Context make_context(const std::string& device);

/// Registers what a case file of an operator asks for, on every device that can be timed.
void register_attention(const nlohmann::json& cases);

/// Registers the cost of an attention call that has next to nothing to compute.
void register_attention_overhead();

}  // namespace sorot::bench
