#include "tests/support/plain.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "tests/support/storage.h"

namespace sorot::support {
namespace {

float rounded(DType dtype, float x) { return static_cast<float>(round_to(dtype, static_cast<double>(x))); }

std::vector<float> narrow(const std::vector<double>& values) {
  std::vector<float> result;
  result.reserve(values.size());
  for (const double x : values) result.push_back(static_cast<float>(x));
  return result;
}

std::int64_t first_position(const DenseAttention& p, std::int64_t b) {
  if (p.align == Align::offsets) return p.offsets[static_cast<std::size_t>(b)];
  if (p.align == Align::top_left) return 0;
  std::int64_t length = p.keys;
  if (!p.kv_lengths.empty()) {
    length = std::max<std::int64_t>(0, std::min(p.keys, p.kv_lengths[static_cast<std::size_t>(b)]));
  }
  return length - p.queries;
}

/// The f32 copies of a problem.
struct Plain {
  explicit Plain(const DenseAttention& problem)
      : p(problem), q(narrow(p.q)), k(narrow(p.k)), v(narrow(p.v)), bias(narrow(p.bias)) {}

  float score(std::size_t row, std::size_t key_row, std::size_t pair, std::int64_t h, std::int64_t distance) const {
    const auto size = static_cast<std::size_t>(p.head_dim);
    float s = 0;
    for (std::size_t d = 0; d < size; ++d) s += q[row * size + d] * k[key_row * size + d];
    s *= static_cast<float>(p.scale ? *p.scale : 1 / std::sqrt(static_cast<double>(p.head_dim)));
    if (p.softcap > 0) s = static_cast<float>(p.softcap) * std::tanh(s / static_cast<float>(p.softcap));
    if (!bias.empty()) s += bias[pair];
    if (!p.alibi_slopes.empty()) {
      s -= static_cast<float>(p.alibi_slopes[static_cast<std::size_t>(h)]) * static_cast<float>(std::abs(distance));
    }
    return rounded(p.dtype, s);
  }

  const DenseAttention& p;
  std::vector<float> q, k, v, bias;
};

}  // namespace

PlainAttention plain_attention(const DenseAttention& p, const std::vector<char>& attended) {
  const Plain plain(p);
  const auto dv = static_cast<std::size_t>(p.value_dim);
  const auto keys = static_cast<std::size_t>(p.keys);
  PlainAttention result;
  result.weights.assign(attended.size(), 0);
  result.out.reserve(static_cast<std::size_t>(p.batch * p.heads * p.queries) * dv);
  std::vector<float> weights(keys);

  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.heads; ++h) {
      const std::size_t first_key = p.kv_head(b, h) * keys;
      const float sink = p.sinks.empty() ? -std::numeric_limits<float>::infinity()
                                         : static_cast<float>(p.sinks[static_cast<std::size_t>(h)]);
      for (std::int64_t i = 0; i < p.queries; ++i) {
        const std::size_t row = p.row(b, h, i);
        const std::int64_t position = first_position(p, b) + i;
        float maximum = sink;
        for (std::size_t j = 0; j < keys; ++j) {
          if (attended[row * keys + j] == 0) continue;
          weights[j] = plain.score(row, first_key + j, row * keys + j, h, position - static_cast<std::int64_t>(j));
          maximum = std::fmax(maximum, weights[j]);
        }
        float sum = std::exp(sink - maximum);
        for (std::size_t j = 0; j < keys; ++j) {
          if (attended[row * keys + j] != 0) sum += weights[j] = std::exp(weights[j] - maximum);
        }
        for (std::size_t j = 0; j < keys; ++j) {
          if (attended[row * keys + j] != 0) {
            weights[j] = rounded(p.dtype, weights[j] / sum);
            result.weights[row * keys + j] = static_cast<double>(weights[j]);
          }
        }
        for (std::size_t d = 0; d < dv; ++d) {
          float out = 0;
          for (std::size_t j = 0; j < keys; ++j) {
            if (attended[row * keys + j] != 0) out += weights[j] * plain.v[(first_key + j) * dv + d];
          }
          result.out.push_back(static_cast<double>(rounded(p.dtype, out)));
        }
      }
    }
  }
  return result;
}

}  // namespace sorot::support
