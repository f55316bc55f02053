#include "sorot/attention.h"

#include <cmath>
#include <cstdio>

#include "cpu/core/backend.h"
#include "cpu/core/check.h"
#include "cpu/core/front_door.h"
#include "cpu/core/problem/attention.h"

/// The front door of attention: checks the Args once, makes the Problem, plans, runs, explains. No arithmetic.
namespace sorot::inline v0 {

/// Every field of AttentionArgs under its name, in order. Plans and messages speak of fields by this list.
template <class Visit>
void for_each_field(const AttentionArgs& args, Visit visit) {
  visit("q", args.q);
  visit("k", args.k);
  visit("v", args.v);
  visit("out", args.out);
  visit("kv_lengths", args.kv_lengths);
  visit("align", static_cast<std::uint64_t>(args.align));
  visit("offsets", args.offsets);
  visit("causal", static_cast<std::uint64_t>(args.causal));
  visit("window", core::pack(args.window.left, args.window.right));
  visit("mask", args.mask);
  visit("scale", core::bits_of(args.scale));
  visit("softcap", core::bits_of(args.softcap));
  visit("bias", args.bias);
  visit("alibi_slopes", args.alibi_slopes);
  visit("sinks", args.sinks);
  visit("lse", args.lse);
  visit("weights", args.weights);
}

namespace {

using core::AttentionProblem;
using core::Check;

bool is_storage_type(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

/// A host parameter as the arithmetic will use it.
double rounded(double parameter, DType dtype) {
  return dtype == DType::f64 ? parameter : static_cast<double>(static_cast<float>(parameter));
}

/// The required tensors, and with them the sizes of the problem.
void check_qkv_out(Check& check, const AttentionArgs& args, AttentionProblem& p) {
  check.well_formed("q", args.q);
  check.well_formed("k", args.k);
  check.well_formed("v", args.v);
  check.well_formed("out", args.out);
  check.require(is_storage_type(args.q.dtype), "q has dtype %s, expected f64, f32, f16 or bf16", name(args.q.dtype));
  check.dtype_is("k", args.k, {args.q.dtype});
  check.dtype_is("v", args.v, {args.q.dtype});
  check.dtype_is("out", args.out, {args.q.dtype});
  check.require(args.q.rank == 4, "q has rank %d, expected 4: [B, H, Sq, D]", args.q.rank);
  check.require(args.k.rank == 4, "k has rank %d, expected 4: [B, Hkv, Skv, D]", args.k.rank);
  check.require(args.v.rank == 4, "v has rank %d, expected 4: [B, Hkv, Skv, Dv]", args.v.rank);
  if (!check.ok()) return;

  p.batch = args.q.shape[0];
  p.heads = args.q.shape[1];
  p.queries = args.q.shape[2];
  p.head_dim = args.q.shape[3];
  p.kv_heads = args.k.shape[1];
  p.keys = args.k.shape[2];
  p.value_dim = args.v.shape[3];
  if (p.head_dim == 0) check.require(false, "q has shape %s, expected D >= 1", core::ShapeText(args.q).text);
  if (p.value_dim == 0) check.require(false, "v has shape %s, expected Dv >= 1", core::ShapeText(args.v).text);
  check.require(p.kv_heads > 0 || p.heads == 0, "%lld query heads have 0 kv heads to read, expected at least 1",
                static_cast<long long>(p.heads));
  if (p.kv_heads > 0 && p.heads % p.kv_heads != 0) {
    check.require(false, "%lld query heads are not a multiple of %lld kv heads: q has shape %s [B, H, Sq, D], k %s",
                  static_cast<long long>(p.heads), static_cast<long long>(p.kv_heads), core::ShapeText(args.q).text,
                  core::ShapeText(args.k).text);
  }
  check.shape_is("k", args.k, {p.batch, p.kv_heads, p.keys, p.head_dim}, "[B, Hkv, Skv, D]");
  check.shape_is("v", args.v, {p.batch, p.kv_heads, p.keys, p.value_dim}, "[B, Hkv, Skv, Dv]");
  check.shape_is("out", args.out, {p.batch, p.heads, p.queries, p.value_dim}, "[B, H, Sq, Dv]");
  if (!check.ok()) return;
  p.group = p.heads > 0 ? p.heads / p.kv_heads : 1;
  p.q = args.q;
  p.k = args.k;
  p.v = args.v;
  p.out = args.out;
}

/// A tensor with one element a sequence or a head, if present.
ConstTensorView optional_vector(Check& check, const char* name, const ConstTensorView& view, DType dtype,
                                std::int64_t size, const char* meaning) {
  if (!check.ok() || core::absent(view)) return {};
  check.well_formed(name, view);
  check.dtype_is(name, view, {dtype});
  check.shape_is(name, view, {size}, meaning);
  return view;
}

void check_positions(Check& check, const AttentionArgs& args, AttentionProblem& p) {
  p.kv_lengths = optional_vector(check, "kv_lengths", args.kv_lengths, DType::i32, p.batch, "[B]");
  check.require(args.align == Align::top_left || args.align == Align::bottom_right || args.align == Align::offsets,
                "align is %d, expected top_left (0), bottom_right (1) or offsets (2)", static_cast<int>(args.align));
  const bool wants_offsets = args.align == Align::offsets;
  check.require(!wants_offsets || !core::absent(args.offsets), "align is offsets, but the tensor offsets is missing");
  check.require(wants_offsets || core::absent(args.offsets), "offsets is given, but align is %s: expected offsets",
                args.align == Align::top_left ? "top_left" : "bottom_right");
  p.offsets = optional_vector(check, "offsets", args.offsets, DType::i32, p.batch, "[B]");
  check.require(args.window.left >= -1, "window.left is %d, expected >= -1 (-1: unbounded)", args.window.left);
  check.require(args.window.right >= -1, "window.right is %d, expected >= -1 (-1: unbounded)", args.window.right);
  p.align = args.align;
  p.window_left = args.window.left;
  p.window_right = args.causal ? 0 : args.window.right;  // causal is a window that ends at the query itself
}

void check_scores(Check& check, const AttentionArgs& args, AttentionProblem& p) {
  const auto pairs = {p.batch, p.heads, p.queries, p.keys};
  if (check.ok() && !core::absent(args.mask)) {
    check.well_formed("mask", args.mask);
    check.dtype_is("mask", args.mask, {DType::boolean});
    check.broadcasts_to("mask", args.mask, pairs, "[B, H, Sq, Skv]");
    if (check.ok()) p.mask = core::broadcast_to(args.mask, pairs);
  }

  const double scale = args.scale.value_or(1.0 / std::sqrt(static_cast<double>(p.head_dim)));
  p.scale = rounded(scale, p.q.dtype);
  p.softcap = rounded(args.softcap, p.q.dtype);
  const char* arithmetic = p.q.dtype == DType::f64 ? "f64" : "f32";
  check.require(std::isfinite(p.scale), "scale is %g, expected a finite %s", scale, arithmetic);
  check.require(args.softcap >= 0 && std::isfinite(p.softcap), "softcap is %g, expected a finite %s >= 0 (0: off)",
                args.softcap, arithmetic);
  check.require(args.softcap == 0 || p.softcap > 0, "softcap is %g, which rounds to 0 in %s; expected 0 (off) or more",
                args.softcap, arithmetic);

  if (check.ok() && !core::absent(args.bias)) {
    check.well_formed("bias", args.bias);
    check.dtype_is("bias", args.bias, {p.q.dtype, DType::f32});
    check.broadcasts_to("bias", args.bias, pairs, "[B, H, Sq, Skv]");
    if (check.ok()) p.bias = core::broadcast_to(args.bias, pairs);
  }
  p.alibi_slopes = optional_vector(check, "alibi_slopes", args.alibi_slopes, DType::f32, p.heads, "[H]");
  p.sinks = optional_vector(check, "sinks", args.sinks, DType::f32, p.heads, "[H]");
}

void check_extra_outputs(Check& check, const AttentionArgs& args, AttentionProblem& p) {
  if (check.ok() && !core::absent(args.lse)) {
    check.well_formed("lse", args.lse);
    check.dtype_is("lse", args.lse, {p.q.dtype == DType::f64 ? DType::f64 : DType::f32});
    check.shape_is("lse", args.lse, {p.batch, p.heads, p.queries}, "[B, H, Sq]");
    p.lse = args.lse;
  }
  if (check.ok() && !core::absent(args.weights)) {
    check.well_formed("weights", args.weights);
    check.dtype_is("weights", args.weights, {p.q.dtype, DType::f32});
    check.shape_is("weights", args.weights, {p.batch, p.heads, p.queries, p.keys}, "[B, H, Sq, Skv]");
    p.weights = args.weights;
  }
}

/// All that can be wrong with the args themselves. The only way to an AttentionProblem.
Status make_problem(const AttentionArgs& args, AttentionProblem& problem) noexcept {
  Check check;
  check_qkv_out(check, args, problem);
  if (!check.ok()) return check.status();
  check_positions(check, args, problem);
  check_scores(check, args, problem);
  check_extra_outputs(check, args, problem);
  return check.status();
}

}  // namespace

Status attention_plan(const Context& context, const AttentionArgs& args, AttentionPlan& plan, PlanHint hint) noexcept {
  AttentionProblem problem;
  if (Status s = make_problem(args, problem); !s.ok()) return s;
  Check check;
  core::check_overlaps<AttentionPlan>(check, args, nullptr);
  if (!check.ok()) return check.status();
  const core::AttentionBackend* backend = nullptr;
  if (Status s = core::find_backend(context, &core::Backend::attention, "attention", backend); !s.ok()) return s;
  return core::make_plan(context, *backend, problem, args, hint, plan);
}

Status attention(const Context& context, const AttentionPlan& plan, const AttentionArgs& args,
                 Workspace workspace) noexcept {
  AttentionProblem problem;
  if (Status s = make_problem(args, problem); !s.ok()) return s;
  Check check;
  core::check_overlaps<AttentionPlan>(check, args, &workspace);
  if (!check.ok()) return check.status();
  const core::AttentionBackend* backend = nullptr;
  if (Status s = core::find_backend(context, &core::Backend::attention, "attention", backend); !s.ok()) return s;
  core::check_plan(check, context, plan, args);
  if (!check.ok()) return check.status();
  if (Status s = core::check_workspace(workspace, plan.workspace_bytes); !s.ok()) return s;
  if (core::has_no_rows(problem)) return {};
  return backend->run(context, problem, plan, workspace.data);
}

Status attention(const Context& context, const AttentionArgs& args, Workspace workspace) noexcept {
  AttentionPlan plan;
  if (Status s = attention_plan(context, args, plan); !s.ok()) return s;
  return attention(context, plan, args, workspace);
}

Explanation explain(const AttentionPlan& plan) noexcept {
  Explanation explanation;
  if (plan.kernel == nullptr) {
    std::snprintf(explanation.text, sizeof explanation.text, "empty plan: attention_plan fills it");
    return explanation;
  }
  char keys[32] = "all";
  if (plan.tile_keys > 0) std::snprintf(keys, sizeof keys, "%d", plan.tile_keys);
  std::snprintf(explanation.text, sizeof explanation.text,
                "%s<%s> on %s, tile %d queries x %s keys, %d split%s, workspace %zu bytes; %s", plan.kernel,
                plan.variant, plan.device, plan.tile_queries, keys, plan.splits, plan.splits == 1 ? "" : "s",
                plan.workspace_bytes, plan.reasons);
  return explanation;
}

}  // namespace sorot::inline v0
