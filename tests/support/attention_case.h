#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sorot/attention.h"
#include "tests/support/layout.h"

/// One problem for attention in words: everything but the random values, which follow from `seed`.
namespace sorot::support {

/// Which of the sizes of [B, H, Sq, Skv] a mask or bias has; the others are 1 or, to the left of its rank, missing.
struct Broadcast {
  std::int32_t rank = 4;
  bool full[4] = {true, true, true, true};

  bool operator==(const Broadcast&) const = default;
};

struct MaskCase {
  bool present = false;
  Broadcast broadcast;
  double density = 0.75;   ///< probability that a pair is attended
  bool empty_row = false;  ///< all of one query's keys masked
  Layout layout;

  bool operator==(const MaskCase&) const = default;
};

struct BiasCase {
  bool present = false;
  DType dtype = DType::f32;
  Broadcast broadcast;
  bool whole_numbers = false;     ///< integers, which a score of millions still takes without rounding
  bool infinite_entries = false;  ///< some -inf: not attended
  bool infinite_row = false;      ///< one query's row all -inf
  bool lowest_row = false;        ///< one query's row all -3.4e38, a number
  bool billion_entries = false;   ///< some -1e9, the usual fill
  bool billion_row = false;       ///< one query's row all -1e9
  Layout layout;

  bool operator==(const BiasCase&) const = default;
};

/// A small tensor with its values written out; absent if empty.
struct VectorCase {
  std::vector<double> values;
  Layout layout;

  bool operator==(const VectorCase&) const = default;
};

/// What q and k are made of.
enum class Values : std::uint8_t {
  unit,     ///< scores around 1
  fifty,    ///< scores of magnitude 50 and more
  extreme,  ///< q = 448, k = +-448
  tiny,     ///< subnormal and nearly so; v a thousand times the smallest normal number
};

/// Where a NaN or infinity is put.
enum class Place : std::uint8_t {
  query,           ///< q of a row that attends something
  masked_key,      ///< k of a pair that is not attended
  attended_key,    ///< k of a pair that is
  masked_value,    ///< v of a pair that is not attended
  attended_value,  ///< v of a pair that is
  masked_bias,     ///< bias of a pair that is not attended for another reason
  attended_bias,   ///< bias of a pair that is attended
};

struct Placement {
  Place place = Place::query;
  double value = 0;

  bool operator==(const Placement& other) const;  ///< NaN equals NaN
};

/// One of the sizes, made zero in a sibling of the case.
enum class EmptySize : std::uint8_t { none, batch, heads, all_heads, queries, keys };

struct AttentionCase {
  std::uint64_t seed = 0;
  DType dtype = DType::f32;
  std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, head_dim = 1, value_dim = 1;
  Values values = Values::unit;
  Layout q, k, v, out;  ///< if q, k and v are all packed, they share one buffer

  Align align = Align::top_left;
  bool causal = false;
  Window window;
  VectorCase kv_lengths, offsets;
  MaskCase mask;

  std::optional<double> scale;
  double softcap = 0;
  BiasCase bias;
  VectorCase alibi_slopes, sinks;
  std::vector<Placement> placements;

  bool lse = false;
  Layout lse_layout;
  DType weights = DType::none;  ///< none: not asked for
  Layout weights_layout;

  // Siblings, run along with the case.
  std::int32_t simple = -1;           ///< the fast kernels' subset in this variant (0..14); -1: none
  std::int32_t aligned = -1;          ///< all features, over rows that tensor cores like, in this variant (0..6)
  EmptySize empty = EmptySize::none;  ///< with this size 0
  std::int32_t invalid = -1;          ///< with this mistake in its args (see invalid_args.h); -1: none
};

/// A case to run, without siblings of its own.
struct Sibling {
  std::string what;  ///< "" for the case itself, else a prefix for messages: "simple sibling: "
  AttentionCase description;
};

/// The case as it stands, then its siblings: simple, aligned, both, empty.
std::vector<Sibling> with_siblings(const AttentionCase& c);

/// One JSON object; what has its default value is left out.
std::string to_json(const AttentionCase& c);

/// A JSON array of such objects. Throws std::runtime_error that says what is wrong and would be right.
std::vector<AttentionCase> cases_from_json(const std::string& text);

}  // namespace sorot::support
