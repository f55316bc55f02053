#include "bench/attention_counts.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "bench/attention_tensors.h"
#include "cuda/emulator/control.h"
#include "tests/support/device.h"

namespace sorot::bench {
namespace {

void require(const Status& status) {
  if (!status.ok()) throw std::runtime_error(support::whole_message(status));
}

bool starts_with(const std::string& text, const char* beginning) { return text.rfind(beginning, 0) == 0; }

bool is_global(const std::string& instruction) {
  return instruction == "load_global" || instruction == "store_global" || instruction == "cp_async";
}

bool is_shared(const std::string& instruction) {
  return instruction == "load_shared" || instruction == "store_shared" || instruction == "cp_async shared" ||
         starts_with(instruction, "ldmatrix");
}

bool served_alike(const AttentionPlan& a, const AttentionPlan& b) {
  return std::strcmp(a.kernel, b.kernel) == 0 && std::strcmp(a.variant, b.variant) == 0 && a.splits == b.splits;
}

/// Smaller problems and the length that each stands for, in units; the whole problem is `whole` units.
struct Samples {
  std::vector<AttentionCase> cases;
  std::vector<double> lengths;
  double whole = 0;
};

/// Queries and keys alike: 2, 3 and 4 times as many as are whole tiles of both.
Samples square_samples(const AttentionCase& c, const AttentionPlan& plan) {
  Samples samples;
  const std::int64_t unit = std::max(plan.tile_queries, plan.tile_keys);
  if (c.queries != c.keys || c.keys % unit != 0 || unit % std::min(plan.tile_queries, plan.tile_keys) != 0) return {};
  samples.whole = static_cast<double>(c.keys) / static_cast<double>(unit);
  for (const std::int64_t length : {2, 3, 4}) {
    samples.cases.push_back(c);
    samples.cases.back().queries = samples.cases.back().keys = length * unit;
    samples.lengths.push_back(static_cast<double>(length));
  }
  return samples;
}

/// Few queries, which see all keys: two tiles of keys a split, and one tile more.
Samples decoding_samples(const AttentionCase& c, const AttentionPlan& plan) {
  Samples samples;
  if (c.queries != 1 || attended_keys(c, 0) != c.keys || c.keys % plan.tile_keys != 0) return {};
  samples.whole = static_cast<double>(c.keys) / plan.tile_keys;
  for (const std::int64_t tiles : {2 * plan.splits, 2 * plan.splits + 1}) {
    samples.cases.push_back(c);
    samples.cases.back().keys = tiles * plan.tile_keys;
    samples.lengths.push_back(static_cast<double>(tiles));
  }
  return samples;
}

/// Weights of the samples in the polynomial through all of them, at the whole length (Lagrange's).
std::vector<double> weights_of(const Samples& samples) {
  std::vector<double> weights;
  for (const double own : samples.lengths) {
    double weight = 1;
    for (const double other : samples.lengths) {
      if (other != own) weight *= (samples.whole - other) / (own - other);
    }
    weights.push_back(weight);
  }
  return weights;
}

AttentionCase of_one_kv_head(AttentionCase c) {
  c.heads /= c.kv_heads;
  c.batch = c.kv_heads = 1;
  return c;
}

void add(AttentionCounts& sum, const AttentionCounts& part, double weight) {
  sum.mma += weight * part.mma;
  sum.shared_wavefronts += weight * part.shared_wavefronts;
  sum.asked_bytes += weight * part.asked_bytes;
  sum.blocks += weight * part.blocks;
}

}  // namespace

AttentionPlan plan_on_gpu(const AttentionCase& c, int compute_capability) {
  emulator::Settings settings;
  settings.profile = compute_capability;
  const emulator::Scoped scope(settings);
  const Device device("cuda");
  // A plan looks at addresses, not at what is there.
  const auto address = [&](int n) { return reinterpret_cast<void*>(std::uintptr_t{1} << 40 << n); };  // NOLINT
  AttentionPlan plan;
  require(attention_plan(device.context(), attention_args(c, address(0), address(1), address(2), address(3)), plan));
  return plan;
}

AttentionCounts count(const AttentionCase& c, int compute_capability) {
  emulator::Settings settings;
  settings.profile = compute_capability;
  settings.count = true;
  const emulator::Scoped scope(settings);
  const Device device("cuda");
  const AttentionTensors tensors(device, c);
  AttentionPlan plan;
  require(attention_plan(device.context(), tensors.args(), plan));
  const DeviceMemory workspace(device, plan.workspace_bytes);
  emulator::clear_counts();
  emulator::clear_launches();
  require(attention(device.context(), plan, tensors.args(), workspace.workspace()));
  device.wait();

  AttentionCounts counts;
  for (const emulator::AccessCount& line : emulator::counts()) {
    if (starts_with(line.instruction, "mma_")) {
      counts.mma += static_cast<double>(line.requests);
    } else if (is_global(line.instruction)) {
      counts.asked_bytes += 32 * static_cast<double>(line.transactions);
    } else if (is_shared(line.instruction)) {
      counts.shared_wavefronts += static_cast<double>(line.transactions);
    } else {
      throw std::runtime_error("the model does not know the instruction " + line.instruction);
    }
  }
  for (const emulator::LaunchRecord& launch : emulator::launches()) {
    if (launch.kernel == plan.kernel) counts.blocks += launch.grid[0];
  }
  return counts;
}

AttentionCounts count_by_parts(const AttentionCase& c, int compute_capability) {
  const AttentionPlan plan = plan_on_gpu(c, compute_capability);
  const auto alike = [&](const AttentionCase& other) {
    return served_alike(plan, plan_on_gpu(other, compute_capability));
  };
  const auto smaller = [&](const Samples& samples) {
    if (samples.cases.empty() || samples.whole <= samples.lengths.back()) return false;
    return std::all_of(samples.cases.begin(), samples.cases.end(), alike);
  };
  // The heads first: their number may decide into how many splits the keys go, and the lengths then follow it.
  for (const bool one_head : {true, false}) {
    const AttentionCase heads = one_head ? of_one_kv_head(c) : c;
    const auto times = static_cast<double>(one_head ? c.batch * c.kv_heads : 1);
    for (const auto& samples_of : {decoding_samples, square_samples}) {
      const Samples samples = samples_of(heads, plan);
      if (!smaller(samples)) continue;
      AttentionCounts sum;
      const std::vector<double> weights = weights_of(samples);
      for (std::size_t n = 0; n < weights.size(); ++n) {
        add(sum, count(samples.cases[n], compute_capability), weights[n] * times);
      }
      return sum;
    }
    if (alike(heads)) {
      AttentionCounts sum;
      add(sum, count(heads, compute_capability), times);
      return sum;
    }
  }
  return count(c, compute_capability);
}

}  // namespace sorot::bench
