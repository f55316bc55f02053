#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "cpu/core/check.h"
#include "cpu/core/problem/attention.h"
#include "cuda/attention/attention_plan.h"
#include "cuda/attention/attention_simt.h"
#include "cuda/backend.h"
#include "cuda/machine/runtime.h"

/// The launcher of attention on CUDA devices: asks the plan, fills parameters, launches.
namespace sorot::inline v0::cuda {
namespace {

using core::AttentionProblem;
using core::ContextAccess;
using core::CudaDevice;

Status plan(const Context& context, const AttentionProblem& problem, const PlanHint& hint,
            AttentionPlan& plan) noexcept {
  if (hint.kernel != nullptr && std::strcmp(hint.kernel, kAttentionSimt) != 0) {
    return core::make_status(StatusCode::kUnsupported, "device cuda has no attention kernel '%.64s', only %s",
                             hint.kernel, kAttentionSimt);
  }
  AttentionSimtPlan simt;
  if (Status s = plan_attention_simt(problem, ContextAccess::cuda(context), simt); !s.ok()) return s;
  plan.kernel = kAttentionSimt;
  plan.variant = simt.variant;
  plan.workspace_bytes = simt.workspace_bytes;
  plan.tile_queries = simt.tile.queries;
  plan.tile_keys = simt.tile.keys;
  plan.splits = simt.splits;
  std::snprintf(plan.reasons, sizeof plan.reasons,
                "plain f32 arithmetic, %lld blocks; this build has no faster kernel for CUDA devices",
                static_cast<long long>(simt.blocks));
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

AttentionSimtParams make_params(const AttentionProblem& p, const AttentionSimtPlan& plan, void* workspace) {
  AttentionSimtParams params{};
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
  params.rows = plan.rows;
  params.head_dim = static_cast<std::int32_t>(p.head_dim);
  params.value_dim = static_cast<std::int32_t>(p.value_dim);
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

Status run(const Context& context, const AttentionProblem& problem, const AttentionPlan&, void* workspace) noexcept {
  const CudaDevice& device = ContextAccess::cuda(context);
  AttentionSimtPlan plan;  // pure and cheap, so it is made again instead of being carried in the public plan
  if (Status s = plan_attention_simt(problem, device, plan); !s.ok()) return s;
  const machine::CurrentDevice current(device.ordinal);
  if (!current.status().ok()) return current.status();

  const AttentionSimtParams params = make_params(problem, plan, workspace);
  switch (problem.q.dtype) {
    case DType::f32: return launch<float>(plan, params, device.stream);
    case DType::f16: return launch<float16>(plan, params, device.stream);
    case DType::bf16: return launch<bfloat16>(plan, params, device.stream);
    default: return {StatusCode::kInternal, "attention_simt was planned for a type that it lacks"};
  }
}

}  // namespace

constinit const core::AttentionBackend kAttention{plan, run};

}  // namespace sorot::inline v0::cuda
