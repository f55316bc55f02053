#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sorot/attention.h"
#include "sorot/dtype.h"

/// The judge of attention, written from the contract alone. It includes nothing of cpu/ or cuda/, works on dense
/// arrays in extended precision, and says of every output element what the contract promises there, found without
/// looking at the computed value: so a NaN of its own making is caught too.
namespace sorot::support {

/// A problem without strides: row-major values in the logical shapes of AttentionArgs, as stored (already rounded).
/// Optional tensors are empty when absent; mask and bias are broadcast to [B, H, Sq, Skv].
struct DenseAttention {
  DType dtype = DType::f32;
  std::int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, head_dim = 0, value_dim = 0;
  std::vector<double> q, k, v;
  std::vector<std::int64_t> kv_lengths, offsets;
  Align align = Align::top_left;
  bool causal = false;
  Window window;
  std::vector<char> mask;
  std::optional<double> scale;
  double softcap = 0;
  std::vector<double> bias, alibi_slopes, sinks;

  std::size_t kv_head(std::int64_t b, std::int64_t h) const;              ///< index of [b, h / group] among [B, Hkv]
  std::size_t row(std::int64_t b, std::int64_t h, std::int64_t i) const;  ///< index among [B, H, Sq]
};

/// What the contract promises of an element.
enum class Expect : std::uint8_t {
  number,      ///< a finite number, within the tolerance of the value
  exact,       ///< this very value: a zero, -inf, the sink
  nan,         ///< NaN
  non_finite,  ///< NaN or an infinity
};

struct Expectation {
  std::vector<double> value;
  std::vector<Expect> kind;
};

struct AttentionOracle {
  std::vector<char> attended;         ///< [B, H, Sq, Skv]
  Expectation out, lse, weights;      ///< [B, H, Sq, Dv], [B, H, Sq], [B, H, Sq, Skv]
  std::vector<double> largest_score;  ///< [B, H]: largest |row maximum|, over rows with a finite one
  std::vector<double> largest_value;  ///< [B, H]: largest |v| among the finite elements some row attends
};

/// [B, H, Sq, Skv]: 1 where the pair is attended.
std::vector<char> attended_pairs(const DenseAttention& problem);

AttentionOracle attention_oracle(const DenseAttention& problem);

}  // namespace sorot::support
