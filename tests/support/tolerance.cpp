#include "tests/support/tolerance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/storage.h"

namespace sorot::support {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

PlainError plain_error(const std::vector<double>& plain, const Expectation& expected, std::size_t begin,
                       std::size_t end) {
  PlainError error;
  double squares = 0;
  std::size_t count = 0;
  for (std::size_t e = begin; e < end; ++e) {
    if (expected.kind[e] != Expect::number) continue;
    const double difference = std::fabs(plain[e] - expected.value[e]);
    if (!(difference <= error.max)) error.max = difference;  // a NaN sticks
    squares += difference * difference;
    ++count;
  }
  if (std::isnan(squares)) error.max = squares;
  if (count > 0) error.rms = std::sqrt(squares / static_cast<double>(count));
  return error;
}

/// What is wrong with one element, "" if nothing. `error` and `tolerance` are set for numbers.
std::string judge_element(double actual, Expect kind, double expected, double tolerance, double& error) {
  error = 0;
  switch (kind) {
    case Expect::number:
      error = std::fabs(actual - expected);
      if (std::isnan(expected)) return "the oracle has NaN where the contract gives a number";
      if (error <= tolerance) return "";
      return fmt::format("{:.9g}, expected {:.9g} (error {:.3g}, tolerance {:.3g})", actual, expected, error,
                         tolerance);
    case Expect::exact:
      if (actual == expected) return "";
      error = kInfinity;
      return fmt::format("{:.9g}, expected exactly {:.9g}", actual, expected);
    case Expect::nan:
      if (std::isnan(actual)) return "";
      error = kInfinity;
      return fmt::format("{:.9g}, expected NaN", actual);
    case Expect::non_finite:
      if (!std::isfinite(actual)) return "";
      error = kInfinity;
      return fmt::format("{:.9g}, expected NaN or an infinity", actual);
  }
  return "no such expectation";
}

/// Keeps in the verdict what comes closest to its tolerance, or breaks it most.
void note(Verdict& verdict, double error, double tolerance) {
  if (std::isnan(verdict.error)) return;
  if (!(error * verdict.tolerance <= verdict.error * tolerance) || verdict.tolerance == 0) {
    verdict.error = error;
    verdict.tolerance = tolerance;
  }
}

void fail(Verdict& verdict, const std::string& what) {
  if (verdict.ok) verdict.what = what;
  verdict.ok = false;
}

}  // namespace

HeadTolerance head_tolerance(DType dtype, const PlainError& plain, double largest_score, double largest_value,
                             std::int64_t head_dim) {
  if (dtype == DType::f64) {
    const double tolerance = 1e-12 * (1 + largest_score) * largest_value;
    return {tolerance, tolerance};
  }
  const double floor = (dtype == DType::f32 ? 4 : 1) * ulp(dtype) * largest_value;
  const double extra =
      dtype == DType::f32 ? largest_score * std::sqrt(static_cast<double>(head_dim)) * 0x1p-24 * largest_value : 0;
  const double cap = dtype == DType::bf16  ? 2e-2 * largest_value
                     : dtype == DType::f16 ? 2.5e-3 * largest_value
                                           : kInfinity;
  if (!std::isfinite(plain.max) || !std::isfinite(plain.rms)) {
    // f32 has no cap: what plain arithmetic cannot bound, the floor does.
    const double only = dtype == DType::f32 ? floor + extra : cap;
    return {only, only};
  }
  return {std::min(2 * plain.max + floor + extra, cap), std::min(2 * plain.rms + floor / 4 + extra, cap)};
}

double lse_tolerance(double largest_score, std::int64_t head_dim, double lse) {
  return 4e-6 * (1 + largest_score * std::sqrt(static_cast<double>(head_dim)) / 16) * std::max(1.0, std::fabs(lse) / 8);
}

AttentionTolerance attention_tolerance(const DenseAttention& p, const AttentionOracle& oracle, DType weights_dtype) {
  PlainAttention plain;
  if (p.dtype != DType::f64) plain = plain_attention(p, oracle.attended);
  AttentionTolerance tolerance;
  const auto head_out = static_cast<std::size_t>(p.queries * p.value_dim);
  const auto head_weights = static_cast<std::size_t>(p.queries * p.keys);
  for (std::size_t head = 0; head < static_cast<std::size_t>(p.batch * p.heads); ++head) {
    PlainError out;
    PlainError weights;
    if (p.dtype != DType::f64) {
      out = plain_error(plain.out, oracle.out, head * head_out, (head + 1) * head_out);
      weights = plain_error(plain.weights, oracle.weights, head * head_weights, (head + 1) * head_weights);
    }
    const double score = oracle.largest_score[head];
    tolerance.out.push_back(head_tolerance(p.dtype, out, score, oracle.largest_value[head], p.head_dim));
    HeadTolerance of_weights = head_tolerance(p.dtype, weights, score, 1, p.head_dim);
    if (p.dtype == DType::f64 && weights_dtype == DType::f32) {
      of_weights.max += ulp(DType::f32) / 2;
      of_weights.rms += ulp(DType::f32) / 2;
    }
    tolerance.weights.push_back(of_weights);
    for (std::size_t i = 0; i < static_cast<std::size_t>(p.queries); ++i) {
      const double lse = oracle.lse.value[head * static_cast<std::size_t>(p.queries) + i];
      tolerance.lse.push_back(lse_tolerance(score, p.head_dim, std::isfinite(lse) ? lse : 0));
    }
  }
  return tolerance;
}

Verdict judge_heads(const std::string& name, const std::vector<double>& actual, const Expectation& expected,
                    const std::vector<HeadTolerance>& tolerance, std::size_t row) {
  Verdict verdict;
  if (actual.empty()) return verdict;
  const std::size_t per_head = actual.size() / tolerance.size();
  for (std::size_t head = 0; head < tolerance.size(); ++head) {
    double squares = 0;
    std::size_t count = 0;
    for (std::size_t e = head * per_head; e < (head + 1) * per_head; ++e) {
      double error;
      const std::string wrong =
          judge_element(actual[e], expected.kind[e], expected.value[e], tolerance[head].max, error);
      if (!wrong.empty()) {
        fail(verdict, fmt::format("{}[head {}, row {}, {}] is {}", name, head, e % per_head / row, e % row, wrong));
      }
      if (expected.kind[e] != Expect::number && wrong.empty()) continue;
      note(verdict, error, tolerance[head].max);
      squares += error * error;
      ++count;
    }
    if (count < kFewestForRms) continue;
    const double rms = std::sqrt(squares / static_cast<double>(count));
    note(verdict, rms, tolerance[head].rms);
    if (!(rms <= tolerance[head].rms)) {
      fail(verdict, fmt::format("{}[head {}] has RMS error {:.3g} over {} elements, tolerance {:.3g}", name, head, rms,
                                count, tolerance[head].rms));
    }
  }
  return verdict;
}

Verdict judge_each(const std::string& name, const std::vector<double>& actual, const Expectation& expected,
                   const std::vector<double>& tolerance) {
  Verdict verdict;
  for (std::size_t e = 0; e < actual.size(); ++e) {
    double error;
    const std::string wrong = judge_element(actual[e], expected.kind[e], expected.value[e], tolerance[e], error);
    if (!wrong.empty()) fail(verdict, fmt::format("{}[row {}] is {}", name, e, wrong));
    if (expected.kind[e] == Expect::number || !wrong.empty()) note(verdict, error, tolerance[e]);
  }
  return verdict;
}

}  // namespace sorot::support
