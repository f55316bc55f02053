#include "bench/gpu_model.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>

namespace sorot::bench {
namespace {

// NVIDIA A100 and H200 data sheets: 312 and 989 TFLOP/s of dense f16, 2039 GB/s and 4.8 TB/s. Those TFLOP/s are
//   108 SMs * 1.41 GHz * 2048 and 132 SMs * 1.83 GHz * 4096 operations,
// hence the clocks and 1/2 and 1 mma.sync of 4096 operations a clock. Of an H100's or H200's peak mma.sync reaches
// about two thirds; the rest is for wgmma (Shah et al. 2024, FlashAttention-3). CUDA C++ Programming Guide, "Arithmetic
// Instructions", results a clock and SM: f32 multiply-add 64 (8.0) and 128 (9.0), special functions 16 in both, that is
// one MUFU of a warp in two clocks. Four schedulers issue an instruction each; shared memory has 32 banks of 4 bytes.
constexpr double kMmaShareOfHopper = 2.0 / 3;
constexpr Gpu kGpus[] = {
    {"a100", "A100 SXM4 80 GB, sm_80", 80, 108, 1.41e9, 2.039e12, 0.5, 2, 0.5, 4, 1},
    {"h200", "H200 SXM5, sm_90", 90, 132, 1.83e9, 4.8e12, 1 * kMmaShareOfHopper, 4, 0.5, 4, 1},
};

}  // namespace

std::string gpu_names() {
  std::string names;
  for (const Gpu& gpu : kGpus) names += (names.empty() ? "" : ", ") + std::string(gpu.name);
  return names;
}

const Gpu& gpu_of(const std::string& name) {
  for (const Gpu& gpu : kGpus) {
    if (name == gpu.name) return gpu;
  }
  throw std::invalid_argument("there is no model of '" + name + "', expected one of " + gpu_names());
}

double ModelledTimes::most() const { return std::max({mma, memory, issue, shared}); }

const char* ModelledTimes::bound() const {
  const double all[] = {mma, memory, issue, shared};
  constexpr const char* kNames[] = {"mma", "memory", "issue", "shared"};
  return kNames[std::max_element(std::begin(all), std::end(all)) - std::begin(all)];
}

double share_of_busiest(double blocks, int multiprocessors, bool even_blocks) {
  const double of_even = std::ceil(blocks / multiprocessors) / blocks;
  return even_blocks ? of_even : std::max(1 / blocks, 1.0 / multiprocessors);
}

ModelledTimes model_times(const Gpu& gpu, const LaunchCounts& counts) {
  constexpr double kMicroseconds = 1e6;
  const double share = share_of_busiest(counts.blocks, gpu.multiprocessors, counts.even_blocks);
  const auto of_busiest = [&](double count, double rate) { return count * share / rate / gpu.clock * kMicroseconds; };
  ModelledTimes times;
  times.mma = of_busiest(counts.units, counts.unit == Unit::mma ? gpu.mma : gpu.fma);
  times.memory = counts.bytes / gpu.memory * kMicroseconds;
  times.issue = std::max(of_busiest(counts.units * counts.issued_per_unit, gpu.issue),
                         of_busiest(counts.units * counts.mufu_per_unit, gpu.mufu));
  times.shared = of_busiest(counts.shared_wavefronts, gpu.shared);
  return times;
}

}  // namespace sorot::bench
