#include "tests/support/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sorot::support {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// An extended real. Its special cases are rules written out below, not what the processor makes of them, and its
/// numbers end where those of the score's type do.
struct Real {
  enum Kind { number, plus, minus, nan } kind = number;
  long double value = 0;

  static Real of(double x) {
    if (x != x) return {nan};
    if (x == kInfinity) return {plus};
    if (x == -kInfinity) return {minus};
    return {number, x};
  }
  int sign() const { return kind == plus ? 1 : kind == minus ? -1 : value > 0 ? 1 : value < 0 ? -1 : 0; }
  static Real infinite(int sign) { return {sign > 0 ? plus : minus}; }
};

Real times(const Real& a, const Real& b) {
  if (a.kind == Real::nan || b.kind == Real::nan) return {Real::nan};
  if (a.kind == Real::number && b.kind == Real::number) return {Real::number, a.value * b.value};
  const int sign = a.sign() * b.sign();
  return sign == 0 ? Real{Real::nan} : Real::infinite(sign);  // 0 * inf is NaN
}

Real plus(const Real& a, const Real& b) {
  if (a.kind == Real::nan || b.kind == Real::nan) return {Real::nan};
  if (a.kind == Real::number && b.kind == Real::number) return {Real::number, a.value + b.value};
  if (a.kind == Real::number) return b;
  if (b.kind == Real::number || a.kind == b.kind) return a;
  return {Real::nan};  // inf - inf
}

/// A score is an f32 number (f64 for f64 tensors): what rounds beyond its largest is infinite.
Real within_range(const Real& x, DType dtype) {
  if (x.kind != Real::number) return x;
  const bool beyond =
      dtype == DType::f64 ? std::isinf(static_cast<double>(x.value)) : std::isinf(static_cast<float>(x.value));
  return beyond ? Real::infinite(x.sign()) : x;
}

/// s[i,j] by the formula, for one attended pair.
class Scores {
 public:
  explicit Scores(const DenseAttention& problem)
      : p_(problem), scale_(Real::of(0)), q_finite_(finite_rows(p_.q)), k_finite_(finite_rows(p_.k)) {
    scale_.value =
        p_.scale ? static_cast<long double>(*p_.scale) : 1 / std::sqrt(static_cast<long double>(p_.head_dim));
  }

  Real at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, std::int64_t position) const {
    Real s = clip(times(scale_, clip(dot(b, h, i, j))));
    if (p_.softcap > 0) s = capped(s);
    if (!p_.bias.empty()) {
      const std::size_t pair = p_.row(b, h, i) * static_cast<std::size_t>(p_.keys) + static_cast<std::size_t>(j);
      s = rounded(clip(plus(s, Real::of(p_.bias[pair]))));
    }
    if (!p_.alibi_slopes.empty()) {
      const Real distance{Real::number, static_cast<long double>(std::abs(position - j))};
      const Real falls = clip(times(Real::of(-p_.alibi_slopes[static_cast<std::size_t>(h)]), distance));
      s = rounded(clip(plus(s, falls)));
    }
    return s;
  }

 private:
  Real clip(const Real& x) const { return within_range(x, p_.dtype); }

  /// Where a bias of -1e9 swallows the score, it does so in the score's type, not in this judge's wider one.
  Real rounded(const Real& x) const {
    if (x.kind != Real::number) return x;
    const double narrow =
        p_.dtype == DType::f64 ? static_cast<double>(x.value) : static_cast<double>(static_cast<float>(x.value));
    return {Real::number, narrow};
  }

  std::vector<char> finite_rows(const std::vector<double>& values) const {
    std::vector<char> finite;
    for (auto row = values.begin(); row != values.end(); row += p_.head_dim) {
      finite.push_back(std::all_of(row, row + p_.head_dim, [](double x) { return std::isfinite(x); }) ? 1 : 0);
    }
    return finite;
  }

  Real dot(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const auto size = static_cast<std::size_t>(p_.head_dim);
    const std::size_t q_row = p_.row(b, h, i);
    const std::size_t k_row = p_.kv_head(b, h) * static_cast<std::size_t>(p_.keys) + static_cast<std::size_t>(j);
    const double* q = p_.q.data() + q_row * size;
    const double* k = p_.k.data() + k_row * size;
    if (q_finite_[q_row] != 0 && k_finite_[k_row] != 0) {
      long double sum = 0;
      for (std::size_t d = 0; d < size; ++d) sum += static_cast<long double>(q[d]) * static_cast<long double>(k[d]);
      return {Real::number, sum};
    }
    Real sum;
    for (std::size_t d = 0; d < size; ++d) sum = plus(sum, times(Real::of(q[d]), Real::of(k[d])));
    return sum;
  }

  Real capped(const Real& s) const {
    const auto cap = static_cast<long double>(p_.softcap);
    if (s.kind == Real::nan) return s;
    if (s.kind != Real::number) return {Real::number, s.sign() * cap};
    return {Real::number, cap * std::tanh(s.value / cap)};
  }

  const DenseAttention& p_;
  Real scale_;
  std::vector<char> q_finite_, k_finite_;
};

std::int64_t length_of(const DenseAttention& p, std::int64_t b) {
  if (p.kv_lengths.empty()) return p.keys;
  return std::min(std::max<std::int64_t>(p.kv_lengths[static_cast<std::size_t>(b)], 0), p.keys);
}

std::int64_t position_of(const DenseAttention& p, std::int64_t b, std::int64_t i) {
  if (p.align == Align::bottom_right) return i + length_of(p, b) - p.queries;
  if (p.align == Align::offsets) return i + p.offsets[static_cast<std::size_t>(b)];
  return i;
}

/// One query row's results.
struct RowResult {
  enum { empty, poisoned, ordinary } state = empty;
  long double maximum = 0, sum = 0;  ///< ordinary: of the scores with the sink, of exp(s - maximum) with the sink's
  long double highest = 0;           ///< ordinary: of the scores alone
  std::vector<std::size_t> keys;     ///< attended
  std::vector<long double> weights;  ///< one a key; 0 where the score is -inf
};

/// `scores` belong to `row.keys`; a sink joins the denominator once.
void normalise(RowResult& row, const std::vector<Real>& scores, const Real& sink) {
  bool any = false;
  bool poison = sink.kind == Real::nan || sink.kind == Real::plus;
  for (const Real& s : scores) {
    poison = poison || s.kind == Real::nan || s.kind == Real::plus;
    if (s.kind == Real::number) row.highest = any ? std::max(row.highest, s.value) : s.value;
    any = any || s.kind == Real::number;
  }
  row.weights.assign(scores.size(), 0);
  if (poison || !any) {
    row.state = poison ? RowResult::poisoned : RowResult::empty;
    return;
  }
  row.state = RowResult::ordinary;
  row.maximum = sink.kind == Real::number ? std::max(row.highest, sink.value) : row.highest;
  row.sum = sink.kind == Real::number ? std::exp(sink.value - row.maximum) : 0;
  for (std::size_t a = 0; a < scores.size(); ++a) {
    if (scores[a].kind == Real::number) row.weights[a] = std::exp(scores[a].value - row.maximum);
    row.sum += row.weights[a];
  }
  for (long double& weight : row.weights) weight /= row.sum;
}

void set(Expectation& e, std::size_t index, Expect kind, double value) {
  e.kind[index] = kind;
  e.value[index] = value;
}

/// Writes the expectations of one row.
void expect_row(const DenseAttention& p, std::size_t row_index, std::size_t kv_head, const Real& sink,
                const RowResult& row, AttentionOracle& oracle) {
  const auto dv = static_cast<std::size_t>(p.value_dim);
  const auto keys = static_cast<std::size_t>(p.keys);
  const bool poisoned = row.state == RowResult::poisoned;
  for (std::size_t d = 0; d < dv; ++d) {
    bool finite = true;
    long double sum = 0;
    for (std::size_t a = 0; a < row.keys.size(); ++a) {
      const double value = p.v[(kv_head * keys + row.keys[a]) * dv + d];
      finite = finite && std::isfinite(value);
      if (finite) sum += row.weights[a] * static_cast<long double>(value);
    }
    const std::size_t at = row_index * dv + d;
    if (poisoned) {
      set(oracle.out, at, Expect::nan, kNaN);
    } else if (row.state == RowResult::empty) {
      set(oracle.out, at, Expect::exact, 0);
    } else if (!finite) {
      set(oracle.out, at, Expect::non_finite, kNaN);
    } else {
      set(oracle.out, at, Expect::number, static_cast<double>(sum));
    }
  }

  for (std::size_t j = 0; j < keys; ++j) set(oracle.weights, row_index * keys + j, Expect::exact, 0);
  for (std::size_t a = 0; a < row.keys.size(); ++a) {
    const std::size_t at = row_index * keys + row.keys[a];
    if (poisoned) {
      set(oracle.weights, at, Expect::nan, kNaN);
    } else if (row.weights[a] != 0) {
      set(oracle.weights, at, Expect::number, static_cast<double>(row.weights[a]));
    }
  }

  if (poisoned) {
    set(oracle.lse, row_index, Expect::nan, kNaN);
  } else if (row.state == RowResult::empty) {
    const double value = sink.kind == Real::number ? static_cast<double>(sink.value) : -kInfinity;
    set(oracle.lse, row_index, Expect::exact, value);
  } else {
    set(oracle.lse, row_index, Expect::number, static_cast<double>(row.maximum + std::log(row.sum)));
  }
}

Expectation expectations(std::size_t size) {
  return {std::vector<double>(size, kNaN), std::vector<Expect>(size, Expect::number)};
}

/// Largest |v| among finite elements of keys that some query of the head attends.
double largest_attended_value(const DenseAttention& p, std::int64_t b, std::int64_t h,
                              const std::vector<char>& attended) {
  double result = 0;
  for (std::int64_t j = 0; j < p.keys; ++j) {
    bool seen = false;
    for (std::int64_t i = 0; i < p.queries && !seen; ++i) {
      seen = attended[p.row(b, h, i) * static_cast<std::size_t>(p.keys) + static_cast<std::size_t>(j)] != 0;
    }
    if (!seen) continue;
    const std::size_t key = p.kv_head(b, h) * static_cast<std::size_t>(p.keys) + static_cast<std::size_t>(j);
    for (std::size_t d = 0; d < static_cast<std::size_t>(p.value_dim); ++d) {
      const double x = std::fabs(p.v[key * static_cast<std::size_t>(p.value_dim) + d]);
      if (std::isfinite(x)) result = std::max(result, x);
    }
  }
  return result;
}

}  // namespace

std::size_t DenseAttention::kv_head(std::int64_t b, std::int64_t h) const {
  return static_cast<std::size_t>(b * kv_heads + h / (heads / kv_heads));
}

std::size_t DenseAttention::row(std::int64_t b, std::int64_t h, std::int64_t i) const {
  return static_cast<std::size_t>((b * heads + h) * queries + i);
}

std::vector<char> attended_pairs(const DenseAttention& p) {
  std::vector<char> attended;
  attended.reserve(static_cast<std::size_t>(p.batch * p.heads * p.queries * p.keys));
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.heads; ++h) {
      for (std::int64_t i = 0; i < p.queries; ++i) {
        const std::int64_t position = position_of(p, b, i);
        for (std::int64_t j = 0; j < p.keys; ++j) {
          const std::size_t pair = attended.size();
          const bool real = j < length_of(p, b);
          const bool past = !p.causal || j <= position;
          const bool near_left = p.window.left == -1 || position - p.window.left <= j;
          const bool near_right = p.window.right == -1 || j <= position + p.window.right;
          const bool allowed = p.mask.empty() || p.mask[pair] != 0;
          const bool biased_away = !p.bias.empty() && p.bias[pair] == -kInfinity;
          attended.push_back(real && past && near_left && near_right && allowed && !biased_away ? 1 : 0);
        }
      }
    }
  }
  return attended;
}

AttentionOracle attention_oracle(const DenseAttention& p) {
  AttentionOracle oracle;
  oracle.attended = attended_pairs(p);
  const auto rows = static_cast<std::size_t>(p.batch * p.heads * p.queries);
  oracle.out = expectations(rows * static_cast<std::size_t>(p.value_dim));
  oracle.lse = expectations(rows);
  oracle.weights = expectations(rows * static_cast<std::size_t>(p.keys));

  const Scores scores(p);
  std::vector<Real> row_scores;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.heads; ++h) {
      const Real sink = p.sinks.empty() ? Real{Real::minus} : Real::of(p.sinks[static_cast<std::size_t>(h)]);
      double largest_score = 0;
      for (std::int64_t i = 0; i < p.queries; ++i) {
        RowResult row;
        row_scores.clear();
        for (std::int64_t j = 0; j < p.keys; ++j) {
          const auto key = static_cast<std::size_t>(j);
          if (oracle.attended[p.row(b, h, i) * static_cast<std::size_t>(p.keys) + key] == 0) continue;
          row.keys.push_back(key);
          row_scores.push_back(scores.at(b, h, i, j, position_of(p, b, i)));
        }
        normalise(row, row_scores, sink);
        expect_row(p, p.row(b, h, i), p.kv_head(b, h), sink, row, oracle);
        if (row.state == RowResult::ordinary) {
          largest_score = std::max(largest_score, static_cast<double>(std::fabs(row.highest)));
        }
      }
      oracle.largest_score.push_back(largest_score);
      oracle.largest_value.push_back(largest_attended_value(p, b, h, oracle.attended));
    }
  }
  return oracle;
}

}  // namespace sorot::support
