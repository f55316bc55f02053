#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sorot/context.h"
#include "sorot/export.h"
#include "sorot/plan.h"
#include "sorot/status.h"
#include "sorot/tensor.h"

/// Scaled dot-product attention, forward (Vaswani et al. 2017, section 3.2.1), with grouped-query heads (Ainslie et
/// al. 2023), sliding windows (Beltagy et al. 2020), ALiBi (Press et al. 2022), logit soft-capping (Gemma 2, 2024)
/// and attention sinks (gpt-oss, 2025).
///
///   p       = i + o[b]                              position of query i among the keys; o comes from `align`
///   s[i,j]  = scale * (q[i] . k[j])
///   s       = softcap * tanh(s / softcap)           if softcap > 0
///   s       = s + bias[i,j] - slope[h] * |p - j|
///   Z[i]    = sum over attended j of exp(s[i,j])  + exp(sink[h])
///   out[i]  = sum over attended j of exp(s[i,j]) / Z[i] * v[j]
///   lse[i]  = ln Z[i]
///
/// Key j is attended by query i iff  j < length[b],  j <= p if causal,  p - left <= j <= p + right,  mask[i,j] is
/// non-zero, and bias[i,j] is not -inf. A pair that is not attended contributes nothing, whatever k, v or bias hold.
/// A row that attends no key, or whose scores are all -inf, is empty: out 0, weights 0, lse -inf (or the sink).
/// A NaN or +inf score (or sink) makes the row's out, lse and attended weights NaN; an attended non-finite v[j,d]
/// makes out[i,d] non-finite.
///
/// Query head h reads kv head h / (H / Hkv). Arithmetic is f32 (f64 for f64 tensors): q . k and s are f32 numbers, and
/// what leaves their range is an infinity. Results are rounded once, to nearest even. Every element of out, lse and
/// weights is written, and nothing else.
///
/// The cuda device serves D and Dv up to 256, and no f64: attention_plan answers kUnsupported beyond that.
namespace sorot {
inline namespace v0 {

/// Where query row 0 stands among the keys of its sequence (o in p = i + o).
enum class Align : std::uint8_t {
  top_left,      ///< o = 0
  bottom_right,  ///< o = length[b] - Sq: the last query stands at the last key, as in decoding with a cache
  offsets,       ///< o = offsets[b]
};

/// Sliding window around a query's position p, both ends inclusive: p - left <= j <= p + right. -1 is unbounded.
struct Window {
  std::int32_t left = -1;
  std::int32_t right = -1;
};

/// Arguments of attention. The first four are required; a default-constructed view is absent. T is the type of q:
/// f32, f16, bf16, or f64 (on the reference device only). Inputs may have any strides and may overlap each other;
/// outputs may overlap nothing.
struct AttentionArgs {
  ConstTensorView q;  ///< [B, H, Sq, D], T
  ConstTensorView k;  ///< [B, Hkv, Skv, D], T; H is a multiple of Hkv
  ConstTensorView v;  ///< [B, Hkv, Skv, Dv], T
  TensorView out;     ///< [B, H, Sq, Dv], T

  ConstTensorView kv_lengths = {};  ///< [B], i32: keys j >= length are padding; clamped to [0, Skv]; absent: Skv
  Align align = Align::top_left;    ///< where query rows stand for causal, window and ALiBi
  ConstTensorView offsets = {};     ///< [B], i32, any value: present iff align is Align::offsets
  bool causal = false;              ///< attend only j <= p
  Window window = {};               ///< attend only p - left <= j <= p + right
  ConstTensorView mask = {};        ///< bool, non-zero = attend; right-aligned to [B, H, Sq, Skv], size 1 broadcasts

  std::optional<double> scale = {};   ///< factor on q . k; any finite value; default 1 / sqrt(D)
  double softcap = 0;                 ///< bound on |s| before the bias; 0 is off
  ConstTensorView bias = {};          ///< T or f32, added to the scores; broadcasts like mask; -inf = not attended
  ConstTensorView alibi_slopes = {};  ///< [H], f32: slope[h] * |p - j| is subtracted from the scores
  ConstTensorView sinks = {};         ///< [H], f32: a logit that joins the denominator once; -inf is no sink

  TensorView lse = {};      ///< [B, H, Sq], f32 (f64 if T is f64): ln Z, if present
  TensorView weights = {};  ///< [B, H, Sq, Skv], T or f32: exp(s) / Z, 0 where not attended, if present
};

/// Fields of AttentionArgs.
inline constexpr int kAttentionFields = 17;

/// What attention_plan decided. Plain data: copy it, keep it. It serves every call whose args differ from the
/// planned ones only in data pointers (at least as aligned, up to 16 bytes) and in what they point at: lengths and
/// offsets may change from call to call, shapes, strides and options may not.
struct AttentionPlan {
  const char* kernel = nullptr;     ///< static text: "attention_reference"; null in an empty plan
  const char* variant = nullptr;    ///< static text: the instantiation, "f32"
  const char* device = nullptr;     ///< static text: the device it was made for
  std::size_t workspace_bytes = 0;  ///< what a call needs; a multiple of 256
  std::int32_t tile_queries = 0;    ///< query rows a block works on at a time
  std::int32_t tile_keys = 0;       ///< keys it visits at a time; 0: all of them
  std::int32_t splits = 0;          ///< parts the keys are split into
  char reasons[256] = {};           ///< why this kernel and none faster

  /// One word a field of AttentionArgs, in their order: what a later call must agree with.
  struct Key {
    std::uint64_t fields[kAttentionFields] = {};
    std::uint8_t alignment[kAttentionFields] = {};  ///< log2 of the alignment of the data planned with, at most 4
    std::uint64_t device = 0;                       ///< model of the device
  } key;
};

/// Checks the args and chooses a kernel. Pure: touches no tensor data, allocates nothing, launches nothing.
/// On failure `plan` is left as it was.
/// Errors: kInvalidArgument, kUnsupported, kNoDevice.
SOROT_API Status attention_plan(const Context& context, const AttentionArgs& args, AttentionPlan& plan,
                                PlanHint hint = {}) noexcept;

/// Runs a plan. No allocation, no synchronisation. On kInvalidArgument and kWorkspaceTooSmall nothing was written.
/// Errors: kInvalidArgument (also if the args are not those planned for), kWorkspaceTooSmall, kNoDevice, kDeviceError.
SOROT_API Status attention(const Context& context, const AttentionPlan& plan, const AttentionArgs& args,
                           Workspace workspace) noexcept;

/// Plans and runs. `workspace` must have what attention_plan says such args need.
SOROT_API Status attention(const Context& context, const AttentionArgs& args, Workspace workspace) noexcept;

/// The plan in words: kernel, tile, workspace and why not a faster one.
SOROT_API Explanation explain(const AttentionPlan& plan) noexcept;

}  // namespace v0
}  // namespace sorot
