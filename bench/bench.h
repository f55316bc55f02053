#pragma once

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "cuda/machine/runtime.h"
#include "sorot/sorot.h"
#include "tests/support/device.h"

/// What the benchmarks of all operators share.
namespace sorot::bench {

using support::Device;
using support::DeviceMemory;

/// Elements drawn from a normal distribution, like activations: subnormals and infinities would distort the time. From
/// the millionth on they repeat, or drawing them would take longer than timing.
DeviceMemory random_tensor(const Device& device, DType dtype, std::size_t elements, std::mt19937& random);

/// Devices whose times mean something: those of this build that this machine has, but not the emulator.
std::vector<std::string> timed_devices();

/// Seconds from start to stop: of the wall on the host, of the stream on a GPU.
class StreamTimer {
 public:
  explicit StreamTimer(const Device& device);
  ~StreamTimer();
  StreamTimer(const StreamTimer&) = delete;
  StreamTimer& operator=(const StreamTimer&) = delete;

  void start();
  double stop();

 private:
  const Device& device_;
  std::chrono::steady_clock::time_point begin_;
  machine::Event events_[2] = {};
};

/// Times calls until the benchmark has enough. On the host the whole call; on a GPU what its stream was busy with,
/// between two events, so that the benchmark must be registered with UseManualTime.
template <class Call>
void time_calls(benchmark::State& state, const Device& device, Call call) {
  StreamTimer timer(device);
  for (auto _ : state) {
    timer.start();
    call();
    benchmark::ClobberMemory();
    state.SetIterationTime(timer.stop());
  }
}

/// Ends a benchmark with an error, and in the end sorot_bench with exit code 1.
void fail(benchmark::State& state, const Status& status);
bool anything_failed();

/// Registers what a case file of an operator asks for, on every device that can be timed.
void register_attention(const nlohmann::json& lines);

/// Registers the cost of an attention call that has next to nothing to compute.
void register_attention_overhead();

}  // namespace sorot::bench
