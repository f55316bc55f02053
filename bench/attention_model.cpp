#include "bench/attention_model.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "bench/attention_counts.h"

namespace sorot::bench {
namespace {

constexpr double kWarp = 32;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

double simt_multiply_adds(const AttentionCase& c, const AttentionPlan& plan) {
  const std::int64_t rows = c.heads / c.kv_heads * c.queries;  // of all heads of a group, head after head
  std::int64_t tiles = 0;
  for (std::int64_t first = 0; first < rows; first += plan.tile_queries) {
    const std::int64_t last = std::min(first + plan.tile_queries, rows) - 1;
    const bool one_head = first / c.queries == last / c.queries;
    tiles += divide_up(attended_keys(c, one_head ? last % c.queries : c.queries - 1), plan.tile_keys);
  }
  const std::int64_t columns_of_q = divide_up(c.dim, 4) * 4;
  const std::int64_t columns_of_v = c.dim <= 64 ? 64 : c.dim <= 128 ? 128 : 256;
  const std::int64_t of_a_tile = std::int64_t{plan.tile_queries} * plan.tile_keys * (columns_of_q + columns_of_v);
  return static_cast<double>(c.batch * c.kv_heads * tiles * of_a_tile) / kWarp;
}

ModelledAttention model_attention(const AttentionCase& c, const Gpu& gpu, const MachineCode& code) {
  const AttentionPlan plan = plan_on_gpu(c, gpu.compute_capability);
  const AttentionCounts counted = count_by_parts(c, gpu.compute_capability);
  const LoopFigures loop = code.of(function_of(plan.kernel, plan.variant), gpu.compute_capability);
  ModelledAttention model;
  model.kernel = plan.kernel;
  model.variant = plan.variant;
  model.asked_bytes = counted.asked_bytes;
  model.counts.unit = loop.unit;
  model.counts.units = loop.unit == Unit::mma ? counted.mma : simt_multiply_adds(c, plan);
  model.counts.issued_per_unit = loop.issued;
  model.counts.mufu_per_unit = loop.mufu;
  model.counts.shared_wavefronts = counted.shared_wavefronts;
  model.counts.bytes = attention_bytes(c);
  model.counts.blocks = counted.blocks;
  model.counts.even_blocks = !c.causal || c.queries == 1;
  model.times = model_times(gpu, model.counts);
  return model;
}

void print_attention_model(const Gpu& gpu, const std::vector<AttentionCase>& cases) {
  const MachineCode code = MachineCode::of_checkout();
  std::printf(
      "%s (%s): a model, not a measurement. us are what each takes at least; TFLOP/s what follows from the bound\n"
      "%-26s %-22s %-20s %6s %9s %9s %9s %9s %9s  %-6s %7s %9s %9s\n",
      gpu.name, gpu.description, "case", "kernel", "tile", "blocks", "mma us", "memory us", "issue us", "shared us",
      "bound us", "bound", "TFLOP/s", "HBM MB", "asked MB");
  for (const AttentionCase& c : cases) {
    const ModelledAttention m = model_attention(c, gpu, code);
    std::printf("%-26s %-22s %-20s %6.0f %9.2f %9.2f %9.2f %9.2f %9.2f  %-6s %7.1f %9.2f %9.2f\n", c.name.c_str(),
                m.kernel.c_str(), m.variant.c_str(), m.counts.blocks, m.times.mma, m.times.memory, m.times.issue,
                m.times.shared, m.times.most(), m.times.bound(), attention_flops(c) / m.times.most() / 1e6,
                m.counts.bytes / 1e6, m.asked_bytes / 1e6);
    std::fflush(stdout);
  }
}

}  // namespace sorot::bench
