#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <type_traits>

#include "cpu/core/backend.h"
#include "cpu/core/check.h"
#include "cpu/core/element.h"
#include "cpu/core/problem/attention.h"
#include "cpu/reference/backend.h"

/// The definition of attention: one query row at a time, plain loops, in the order of the formula.
///
///   q[b,h,i,:], k[b,h/group,:,:]  ->  the attended keys and their scores  ->  their maximum m and Z = sum exp(s - m)
///   ->  out[b,h,i,:] = sum exp(s - m) / Z * v[j,:],  lse = m + ln Z,  weights = exp(s - m) / Z
///
/// A score is an f32 number (f64 for f64 tensors) as the contract says. Sums are carried in double, so the definition
/// does not depend on an order of summation and stays exact over any number of keys.
namespace sorot::inline v0::reference {
namespace {

using core::AttentionProblem;
using core::load;
using core::offset;
using core::store;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// One key that the current row attends.
struct Attended {
  std::int64_t key;
  double score;  ///< then exp(score - m), then the weight exp(score - m) / Z
};

/// The current row: query i of head h in sequence b.
struct Row {
  std::int64_t b, h, i;
  std::int64_t kv_head;
  std::int64_t length;    ///< keys of this sequence
  std::int64_t position;  ///< where the query stands among them
  double alibi_slope;
  double sink;  ///< -inf: none
};

/// Workspace: the attended keys of one row, then the sums of its output.
struct Scratch {
  Attended* attended;
  double* sums;  ///< [Dv]

  static std::size_t bytes(const AttentionProblem& p) {
    return static_cast<std::size_t>(p.keys) * sizeof(Attended) + static_cast<std::size_t>(p.value_dim) * sizeof(double);
  }
  Scratch(const AttentionProblem& p, void* workspace)
      : attended(static_cast<Attended*>(workspace)), sums(reinterpret_cast<double*>(attended + p.keys)) {}
};

bool attends(const AttentionProblem& p, const Row& row, std::int64_t j) {
  if (j >= row.length) return false;
  if (p.window_left >= 0 && j < row.position - p.window_left) return false;
  if (p.window_right >= 0 && j > row.position + p.window_right) return false;  // causal is window_right = 0
  if (p.mask.data != nullptr && load(p.mask, offset(p.mask, row.b, row.h, row.i, j)) == 0) return false;
  return p.bias.data == nullptr || load(p.bias, offset(p.bias, row.b, row.h, row.i, j)) != -kInfinity;
}

/// s[i,j]. Score is float, or double for f64 tensors.
template <class T, class Score>
Score score(const AttentionProblem& p, const Row& row, std::int64_t j) {
  const T* q = static_cast<const T*>(p.q.data) + offset(p.q, row.b, row.h, row.i);
  const T* k = static_cast<const T*>(p.k.data) + offset(p.k, row.b, row.kv_head, j);
  double dot = 0;
  for (std::int64_t d = 0; d < p.head_dim; ++d) {
    dot += static_cast<double>(q[d * p.q.strides[3]]) * static_cast<double>(k[d * p.k.strides[3]]);
  }
  Score s = static_cast<Score>(p.scale) * static_cast<Score>(dot);
  if (p.softcap > 0) {
    const auto cap = static_cast<Score>(p.softcap);
    s = cap * std::tanh(s / cap);
  }
  if (p.bias.data != nullptr) s += static_cast<Score>(load(p.bias, offset(p.bias, row.b, row.h, row.i, j)));
  if (p.alibi_slopes.data != nullptr) {
    s -= static_cast<Score>(row.alibi_slope) * static_cast<Score>(std::abs(row.position - j));
  }
  return s;
}

/// out, from the weights of the attended keys. Weights come first: a sum of exp(s - m) * v could leave the range of v.
/// Without a key out is `start`.
template <class T>
void write_out(const AttentionProblem& p, const Row& row, const Scratch& scratch, std::int64_t count, double start) {
  for (std::int64_t d = 0; d < p.value_dim; ++d) scratch.sums[d] = start;
  for (std::int64_t a = 0; a < count; ++a) {
    const T* v = static_cast<const T*>(p.v.data) + offset(p.v, row.b, row.kv_head, scratch.attended[a].key);
    for (std::int64_t d = 0; d < p.value_dim; ++d) {
      scratch.sums[d] += scratch.attended[a].score * static_cast<double>(v[d * p.v.strides[3]]);
    }
  }
  for (std::int64_t d = 0; d < p.value_dim; ++d) store(p.out, offset(p.out, row.b, row.h, row.i, d), scratch.sums[d]);
}

void write_weights(const AttentionProblem& p, const Row& row, const Scratch& scratch, std::int64_t count) {
  for (std::int64_t j = 0; j < p.keys; ++j) store(p.weights, offset(p.weights, row.b, row.h, row.i, j), 0.0);
  for (std::int64_t a = 0; a < count; ++a) {
    const Attended& attended = scratch.attended[a];
    store(p.weights, offset(p.weights, row.b, row.h, row.i, attended.key), attended.score);
  }
}

template <class T>
void attend_row(const AttentionProblem& p, const Row& row, const Scratch& scratch) {
  using Score = std::conditional_t<std::is_same_v<T, double>, double, float>;
  std::int64_t count = 0;
  double highest = -kInfinity;
  bool poisoned = !(row.sink < kInfinity);  // a NaN or +inf among the scores makes the row NaN
  for (std::int64_t j = 0; j < p.keys; ++j) {
    if (!attends(p, row, j)) continue;
    const auto s = static_cast<double>(score<T, Score>(p, row, j));
    scratch.attended[count++] = {j, s};
    poisoned = poisoned || !(s < kInfinity);
    highest = std::fmax(highest, s);
  }

  double lse = row.sink;
  if (highest == -kInfinity && !poisoned) {
    count = 0;  // an empty row attends nothing
  } else {
    const double m = poisoned ? kNaN : std::fmax(highest, row.sink);
    double z = std::exp(row.sink - m);
    for (std::int64_t a = 0; a < count; ++a) z += scratch.attended[a].score = std::exp(scratch.attended[a].score - m);
    for (std::int64_t a = 0; a < count; ++a) scratch.attended[a].score /= z;
    lse = m + std::log(z);
  }

  write_out<T>(p, row, scratch, count, poisoned ? kNaN : 0);  // a bad sink poisons a row without a key, too
  if (p.lse.data != nullptr) store(p.lse, offset(p.lse, row.b, row.h, row.i), lse);
  if (p.weights.data != nullptr) write_weights(p, row, scratch, count);
}

template <class T>
void attend(const AttentionProblem& p, void* workspace) {
  const Scratch scratch(p, workspace);
  Row row{};
  for (row.b = 0; row.b < p.batch; ++row.b) {
    row.length = key_count(p, row.b);
    const std::int64_t first = position_of_first_query(p, row.b);
    for (row.h = 0; row.h < p.heads; ++row.h) {
      row.kv_head = row.h / p.group;
      row.alibi_slope = p.alibi_slopes.data == nullptr ? 0 : load(p.alibi_slopes, offset(p.alibi_slopes, row.h));
      row.sink = p.sinks.data == nullptr ? -kInfinity : load(p.sinks, offset(p.sinks, row.h));
      for (row.i = 0; row.i < p.queries; ++row.i) {
        row.position = first + row.i;
        attend_row<T>(p, row, scratch);
      }
    }
  }
}

constexpr char kName[] = "attention_reference";

Status plan(const Context&, const AttentionProblem& problem, const PlanHint& hint, AttentionPlan& plan) noexcept {
  if (hint.kernel != nullptr && std::strcmp(hint.kernel, kName) != 0) {
    return core::make_status(StatusCode::kUnsupported, "device reference has no attention kernel '%.64s', only %s",
                             hint.kernel, kName);
  }
  constexpr std::int64_t kMostKeys = std::int64_t{1} << 48;  // their scratch would not fit any address space
  const bool no_rows = core::has_no_rows(problem);
  if (!no_rows && (problem.keys > kMostKeys || problem.value_dim > kMostKeys)) {
    return core::make_status(StatusCode::kUnsupported,
                             "device reference has no scratch for Skv %lld and Dv %lld, only for at most 2^48 each",
                             static_cast<long long>(problem.keys), static_cast<long long>(problem.value_dim));
  }
  plan.kernel = kName;
  plan.variant = name(problem.q.dtype);
  plan.workspace_bytes = no_rows ? 0 : Scratch::bytes(problem);
  plan.tile_queries = 1;
  plan.splits = 1;
  std::snprintf(plan.reasons, sizeof plan.reasons,
                "plain loops that define the result; this device has no faster kernel");
  return {};
}

Status run(const Context&, const AttentionProblem& problem, const AttentionPlan&, void* workspace) noexcept {
  switch (problem.q.dtype) {
    case DType::f64: attend<double>(problem, workspace); return {};
    case DType::f32: attend<float>(problem, workspace); return {};
    case DType::f16: attend<float16>(problem, workspace); return {};
    case DType::bf16: attend<bfloat16>(problem, workspace); return {};
    default: return {StatusCode::kInternal, "attention_reference got a dtype that the front door should have refused"};
  }
}

}  // namespace

constinit const core::AttentionBackend kAttention{plan, run};

}  // namespace sorot::inline v0::reference
