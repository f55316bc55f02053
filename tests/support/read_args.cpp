#include "tests/support/read_args.h"

#include <algorithm>

#include "tests/support/layout.h"
#include "tests/support/placement.h"
#include "tests/support/storage.h"

namespace sorot::support {
namespace {

bool present(const ConstTensorView& view) { return view.dtype != DType::none; }

std::vector<std::int64_t> shape_of(const ConstTensorView& view) { return {view.shape, view.shape + view.rank}; }

std::vector<std::int64_t> whole(const ConstTensorView& view) {
  std::vector<std::int64_t> result;
  for (const double x : read_view(view)) result.push_back(static_cast<std::int64_t>(x));
  return result;
}

/// The values of a mask or bias at every query-key pair.
std::vector<double> at_pairs(const ConstTensorView& view, const DenseAttention& p) {
  std::vector<double> result;
  if (!present(view)) return result;
  const std::vector<double> values = read_view(view);
  for (const std::size_t e : broadcast_indices(shape_of(view), {p.batch, p.heads, p.queries, p.keys})) {
    result.push_back(values[e]);
  }
  return result;
}

}  // namespace

std::vector<double> read_view(const ConstTensorView& view) {
  std::vector<double> values;
  if (!present(view)) return values;
  const auto* data = static_cast<const std::byte*>(view.data);
  const auto width = static_cast<std::int64_t>(size_of(view.dtype));
  for (const std::int64_t offset : offsets_of(shape_of(view), {view.strides, view.strides + view.rank})) {
    values.push_back(decode(view.dtype, data + offset * width));
  }
  return values;
}

DenseAttention read_args(const AttentionArgs& args) {
  DenseAttention p;
  p.dtype = args.q.dtype;
  p.batch = args.q.shape[0];
  p.heads = args.q.shape[1];
  p.queries = args.q.shape[2];
  p.head_dim = args.q.shape[3];
  p.kv_heads = args.k.shape[1];
  p.keys = args.k.shape[2];
  p.value_dim = args.v.shape[3];
  p.q = read_view(args.q);
  p.k = read_view(args.k);
  p.v = read_view(args.v);
  p.kv_lengths = whole(args.kv_lengths);
  p.offsets = whole(args.offsets);
  p.align = args.align;
  p.causal = args.causal;
  p.window = args.window;
  for (const double x : at_pairs(args.mask, p)) p.mask.push_back(x != 0 ? 1 : 0);
  p.scale = args.scale;
  p.softcap = args.softcap;
  p.bias = at_pairs(args.bias, p);
  p.alibi_slopes = read_view(args.alibi_slopes);
  p.sinks = read_view(args.sinks);
  return p;
}

Verdict judge_outputs(const AttentionArgs& args, const DenseAttention& problem, const AttentionOracle& oracle,
                      const AttentionTolerance& tolerance) {
  std::vector<Verdict> verdicts{
      judge_heads("out", read_view(args.out), oracle.out, tolerance.out, static_cast<std::size_t>(problem.value_dim))};
  if (present(args.lse)) verdicts.push_back(judge_each("lse", read_view(args.lse), oracle.lse, tolerance.lse));
  if (present(args.weights)) {
    verdicts.push_back(judge_heads("weights", read_view(args.weights), oracle.weights, tolerance.weights,
                                   static_cast<std::size_t>(problem.keys)));
  }
  const auto ratio = [](const Verdict& v) { return v.tolerance > 0 ? v.error / v.tolerance : v.error > 0 ? 1e300 : 0; };
  return *std::max_element(verdicts.begin(), verdicts.end(), [&](const Verdict& a, const Verdict& b) {
    return a.ok != b.ok ? a.ok : ratio(a) < ratio(b);
  });
}

Verdict judge_call(const AttentionArgs& args) {
  const DenseAttention problem = read_args(args);
  const AttentionOracle oracle = attention_oracle(problem);
  return judge_outputs(args, problem, oracle, attention_tolerance(problem, oracle, args.weights.dtype));
}

}  // namespace sorot::support
