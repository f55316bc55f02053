#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "cpu/core/check.h"
#include "cpu/core/problem/attention.h"
#include "cuda/attention/attention_plan.h"
#include "cuda/attention/attention_simt.h"
#include "cuda/attention/attention_sm80.h"
#include "cuda/backend.h"
#include "cuda/machine/runtime.h"

/// The launcher of attention on CUDA devices: asks the plan, fills parameters, launches.
namespace sorot::inline v0::cuda {
namespace {

using core::AttentionProblem;
using core::ContextAccess;
using core::CudaDevice;

/// The kernel asked for, or the fastest; null if there is none of that name.
const char* kernel_for(const AttentionProblem& problem, const CudaDevice& device, const char* wanted, char* reason,
                       std::size_t bytes) {
  if (wanted == nullptr) return choose_attention_kernel(problem, device, reason, bytes);
  std::snprintf(reason, bytes, "asked for by name");
  for (const char* name : {kAttentionSimt, kAttentionSm80Plain, kAttentionSm80General}) {
    if (std::strcmp(wanted, name) == 0) return name;
  }
  return nullptr;
}

Status plan(const Context& context, const AttentionProblem& problem, const PlanHint& hint,
            AttentionPlan& plan) noexcept {
  const CudaDevice& device = ContextAccess::cuda(context);
  char reason[160];
  const char* kernel = kernel_for(problem, device, hint.kernel, reason, sizeof reason);
  if (kernel == nullptr) {
    return core::make_status(StatusCode::kUnsupported, "device cuda has no attention kernel '%.64s', only %s, %s, %s",
                             hint.kernel, kAttentionSimt, kAttentionSm80Plain, kAttentionSm80General);
  }
  long long blocks = 0;
  if (std::strcmp(kernel, kAttentionSimt) == 0) {
    AttentionSimtPlan simt;
    if (Status s = plan_attention_simt(problem, device, simt); !s.ok()) return s;
    plan.variant = simt.variant;
    plan.workspace_bytes = simt.workspace_bytes;
    plan.tile_queries = simt.tile.queries;
    plan.tile_keys = simt.tile.keys;
    plan.splits = simt.splits;
    blocks = simt.blocks;
  } else {
    AttentionSm80Plan sm80;
    const bool general = std::strcmp(kernel, kAttentionSm80General) == 0;
    if (Status s = plan_attention_sm80(problem, device, general, sm80); !s.ok()) return s;
    plan.variant = sm80.variant;
    plan.workspace_bytes = sm80.workspace_bytes;
    plan.tile_queries = kSm80Tiles[sm80.tile].queries;
    plan.tile_keys = kSm80Keys;
    plan.splits = 1;
    blocks = sm80.blocks;
  }
  plan.kernel = kernel;
  std::snprintf(plan.reasons, sizeof plan.reasons, "%s; %lld blocks", reason, blocks);
  return {};
}

template <std::size_t kRank>
void copy_strides(std::int64_t (&to)[kRank], const ConstTensorView& view) {
  for (std::size_t d = 0; d < kRank; ++d) to[d] = view.strides[d];
}

template <class T>
T* at_bytes(void* workspace, std::size_t offset) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(workspace) + offset);
}

/// What every kernel is given.
void fill(AttentionParams& params, const AttentionProblem& p) {
  params.q = p.q.data;
  params.k = p.k.data;
  params.v = p.v.data;
  params.out = p.out.data;
  copy_strides(params.q_strides, p.q);
  copy_strides(params.k_strides, p.k);
  copy_strides(params.v_strides, p.v);
  copy_strides(params.out_strides, p.out);

  params.kv_lengths = static_cast<const std::int32_t*>(p.kv_lengths.data);
  params.kv_lengths_stride = p.kv_lengths.strides[0];
  params.offsets = static_cast<const std::int32_t*>(p.offsets.data);
  params.offsets_stride = p.offsets.strides[0];
  params.bottom_right = p.align == Align::bottom_right;
  params.window_left = p.window_left;
  params.window_right = p.window_right;

  params.mask = static_cast<const std::uint8_t*>(p.mask.data);
  params.bias = p.bias.data;
  copy_strides(params.mask_strides, p.mask);
  copy_strides(params.bias_strides, p.bias);
  params.bias_is_f32 = p.bias.dtype == DType::f32;
  params.alibi_slopes = static_cast<const float*>(p.alibi_slopes.data);
  params.alibi_stride = p.alibi_slopes.strides[0];
  params.sinks = static_cast<const float*>(p.sinks.data);
  params.sinks_stride = p.sinks.strides[0];
  params.scale = static_cast<float>(p.scale);
  params.softcap = static_cast<float>(p.softcap);

  params.lse = static_cast<float*>(p.lse.data);
  params.weights = p.weights.data;
  copy_strides(params.lse_strides, p.lse);
  copy_strides(params.weights_strides, p.weights);
  params.weights_are_f32 = p.weights.dtype == DType::f32;

  params.kv_heads = p.kv_heads;
  params.group = p.group;
  params.queries = p.queries;
  params.keys = p.keys;
  params.head_dim = static_cast<std::int32_t>(p.head_dim);
  params.value_dim = static_cast<std::int32_t>(p.value_dim);
}

AttentionSimtParams make_params(const AttentionProblem& p, const AttentionSimtPlan& plan, void* workspace) {
  AttentionSimtParams params{};
  fill(params, p);
  params.rows = plan.rows;
  params.row_blocks = plan.row_blocks;
  params.splits = plan.splits;

  params.q_path = plan.q_path;
  params.k_path = plan.k_path;
  params.v_path = plan.v_path;
  params.out_vectors = plan.out_vectors;
  params.weight_pairs = plan.weight_pairs;

  params.all_rows = p.batch * p.kv_heads * plan.rows;
  params.partial_pitch = plan.partial_pitch;
  if (plan.splits > 1) {
    params.partial_out = at_bytes<float>(workspace, plan.partial_out_at);
    params.partial_sums = at_bytes<float>(workspace, plan.partial_sums_at);
  }
  if (wants_weights(p)) params.row_sums = at_bytes<float>(workspace, plan.row_sums_at);
  return params;
}

/// Steps of the copies of a tile's rows, see tile::TileCopy: 8 threads a row, or 4 where a row is 64 bytes more than a
/// multiple of 128.
Sm80Steps make_steps(std::int64_t key_stride, int columns, const Sm80Tile& tile) {
  const int rows = tile.threads() / (columns % 64 == 0 ? 8 : 4);
  Sm80Steps steps{};
  for (int pass = 0; pass < 4; ++pass) steps.row[pass] = 2 * key_stride * rows * pass;
  steps.tile = 2 * key_stride * kSm80Keys;
  return steps;
}

AttentionSm80Params make_params(const AttentionProblem& p, const AttentionSm80Plan& plan, void* workspace) {
  constexpr float kLog2E = 1.44269504088896340736F;
  constexpr float kSlack = 8;  // in the exponent of 2: P stays below 2^8
  AttentionSm80Params params{};
  fill(params, p);
  params.general = plan.general;
  params.log2_scale = plan.general ? kLog2E : params.scale * kLog2E;
  params.slack = kSlack / params.log2_scale;
  params.inverse_softcap = p.softcap != 0 ? 1 / params.softcap : 0;
  params.head_chunks = static_cast<std::int32_t>(p.head_dim / 8);
  params.value_chunks = static_cast<std::int32_t>(p.value_dim / 8);
  params.bias_vectors = plan.bias_vectors;
  params.mask_vectors = plan.mask_vectors;
  params.weights_vectors = plan.weights_vectors;
  params.long_first = plan.long_first;
  params.key_tiles = plan.weights_key_tiles;
  params.row_sums = wants_weights(p) ? static_cast<machine::Float4*>(workspace) : nullptr;
  return params;
}

void set_tile(AttentionSm80Params& params, const Sm80Tile& tile, const Sm80Rows& rows) {
  params.row_blocks = rows.row_blocks;
  params.all_heads = rows.heads;
  params.packed = rows.packed;
  params.k_steps = make_steps(params.k_strides[2], tile.head_dim, tile);
  params.v_steps = make_steps(params.v_strides[2], tile.value_dim, tile);
}

template <class T>
Status launch(const AttentionSimtPlan& plan, AttentionSimtParams params, machine::Stream stream) {
  using Launches = AttentionSimtLaunches<T>;
  if (Status s = Launches::attend(plan.tile, plan.blocks, params, stream); !s.ok()) return s;
  if (plan.splits > 1) {
    if (Status s = Launches::merge(params, stream); !s.ok()) return s;
  }
  if (plan.weights_blocks == 0) return {};
  params.row_blocks = plan.weights_row_blocks;
  params.key_tiles = plan.weights_key_tiles;
  return Launches::write_weights(plan.weights_tile, plan.weights_blocks, params, stream);
}

template <class T>
Status launch(const AttentionSm80Plan& plan, AttentionSm80Params params, machine::Stream stream) {
  using Launches = AttentionSm80Launches<T>;
  set_tile(params, kSm80Tiles[plan.tile], plan.rows);
  if (Status s = Launches::attend(plan.tile, plan.general, plan.blocks, params, stream); !s.ok()) return s;
  if (plan.weights_blocks == 0) return {};
  set_tile(params, kSm80WeightsTiles[plan.weights_tile], plan.weights_rows);
  return Launches::write_weights(plan.weights_tile, plan.weights_blocks, params, stream);
}

Status run(const Context& context, const AttentionProblem& problem, const AttentionPlan& planned,
           void* workspace) noexcept {
  const CudaDevice& device = ContextAccess::cuda(context);
  const machine::CurrentDevice current(device.ordinal);
  if (!current.status().ok()) return current.status();

  // Plans are pure and cheap, so they are made again instead of being carried in the public one.
  if (std::strcmp(planned.kernel, kAttentionSimt) == 0) {
    AttentionSimtPlan plan;
    if (Status s = plan_attention_simt(problem, device, plan); !s.ok()) return s;
    const AttentionSimtParams params = make_params(problem, plan, workspace);
    switch (problem.q.dtype) {
      case DType::f32: return launch<float>(plan, params, device.stream);
      case DType::f16: return launch<float16>(plan, params, device.stream);
      case DType::bf16: return launch<bfloat16>(plan, params, device.stream);
      default: return {StatusCode::kInternal, "a kernel was planned for a type that it lacks"};
    }
  }
  AttentionSm80Plan plan;
  const bool general = std::strcmp(planned.kernel, kAttentionSm80General) == 0;
  if (Status s = plan_attention_sm80(problem, device, general, plan); !s.ok()) return s;
  const AttentionSm80Params params = make_params(problem, plan, workspace);
  switch (problem.q.dtype) {
    case DType::f16: return launch<float16>(plan, params, device.stream);
    case DType::bf16: return launch<bfloat16>(plan, params, device.stream);
    default: return {StatusCode::kInternal, "a kernel was planned for a type that it lacks"};
  }
}

}  // namespace

constinit const core::AttentionBackend kAttention{plan, run};

}  // namespace sorot::inline v0::cuda
