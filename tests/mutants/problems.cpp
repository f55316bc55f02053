#include "tests/mutants/problems.h"

#include <limits>

namespace mutants {
namespace {

using sorot::Align;
using sorot::DType;
using sorot::support::AttentionCase;
using sorot::support::Order;
using sorot::support::Place;
using sorot::support::Twist;
using sorot::support::Values;

constexpr DType kType = DType::bf16;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLargest = 0x1.FEp127;  // of bf16

/// 4 heads, 2 kv heads of 2 * queries rows.
AttentionCase problem(std::int64_t queries, std::int64_t keys, std::int64_t head_dim = 64,
                      std::int64_t value_dim = 48) {
  AttentionCase c;
  c.seed = 7;
  c.dtype = kType;
  c.heads = 4;
  c.kv_heads = 2;
  c.queries = queries;
  c.keys = keys;
  c.head_dim = head_dim;
  c.value_dim = value_dim;
  c.lse = true;
  return c;
}

/// One row block of a kv head ends within its second head; lengths end within a tile, and beyond the last key.
AttentionCase windowed() {
  AttentionCase c = problem(45, 140);
  c.batch = 2;
  c.kv_heads = 1;
  c.heads = 2;
  c.align = Align::bottom_right;
  c.window = {.left = 40, .right = 3};
  c.kv_lengths.values = {99, 1000};
  c.weights = kType;
  return c;
}

/// Every feature, empty rows and an empty sequence among them.
AttentionCase everything(std::int64_t queries, std::int64_t keys, std::int64_t head_dim, std::int64_t value_dim) {
  AttentionCase c = problem(queries, keys, head_dim, value_dim);
  c.batch = 2;
  c.align = Align::offsets;
  c.offsets.values = {-20, 75};
  c.window = {.left = -1, .right = 5};
  c.kv_lengths.values = {-5, 1000};
  c.mask.present = c.bias.present = true;
  c.mask.empty_row = true;
  c.bias.infinite_entries = c.bias.infinite_row = true;
  c.bias.dtype = kType;
  c.softcap = 2.5;
  c.alibi_slopes.values = {0.5, 0.25, 0.125, 1};
  c.sinks.values = {0.5, -kInfinity, 3, 1};
  c.weights = DType::f32;
  return c;
}

/// A bias of -inf alone keeps pairs out, whatever k and v hold there.
AttentionCase infinite_bias() {
  AttentionCase c = problem(3, 70);
  c.bias.present = true;
  c.bias.infinite_entries = true;
  c.placements = {{Place::masked_value, kNan}, {Place::masked_value, kNan}, {Place::masked_key, kNan}};
  return c;
}

/// A row whose bias is the lowest number, and one of -1e9, next to ordinary ones: numbers that lose ln Z, and more.
AttentionCase lowest() {
  AttentionCase c = problem(9, 70);
  c.bias.present = c.bias.lowest_row = c.bias.billion_row = true;
  c.mask.present = c.mask.empty_row = true;
  c.weights = DType::f32;
  return c;
}

/// Rows whose one score is -inf are empty, though v is NaN.
AttentionCase all_scores_infinite() {
  AttentionCase c = problem(5, 1);
  for (int n = 0; n < 8; ++n) c.placements.push_back({Place::attended_key, -kInfinity});
  c.placements.push_back({Place::attended_value, kNan});
  c.placements.push_back({Place::attended_value, kInfinity});
  return c;
}

/// Sinks beside which weights are 0 to the last digit: what is attended still counts.
AttentionCase large_sinks() {
  AttentionCase c = problem(5, 70);
  c.sinks.values = {200, 89, 90, -200};
  c.placements = {{Place::attended_value, kInfinity}, {Place::attended_value, kInfinity}};
  return c;
}

/// Two heads of 127 rows: the second row block begins within the first head and ends with one row of the second.
AttentionCase two_heads() {
  AttentionCase c = problem(127, 70, 64, 32);
  c.heads = 2;
  c.kv_heads = 1;
  c.causal = true;
  return c;
}

AttentionCase not_finite(std::int64_t queries, std::int64_t keys) {
  AttentionCase c = problem(queries, keys);
  c.causal = true;
  c.align = Align::bottom_right;
  c.placements = {{Place::masked_value, kNan}, {Place::masked_key, kInfinity}, {Place::masked_value, -kInfinity}};
  return c;
}

/// Sums that leave the range, though their mean does not.
AttentionCase largest(std::int64_t queries) {
  AttentionCase c = problem(queries, 20, 64, 8);
  c.heads = c.kv_heads = 1;
  for (int n = 0; n < 40; ++n) c.placements.push_back({Place::attended_value, kLargest});
  return c;
}

/// Scores of millions, of which softmax may lose no digit; bias in whole numbers.
AttentionCase millions() {
  AttentionCase c = problem(9, 71, 64, 33);
  c.values = Values::extreme;
  c.bias.present = c.bias.whole_numbers = true;
  c.weights = kType;
  c.weights_layout.twist = Twist::padded;
  c.out.twist = Twist::padded;
  return c;
}

std::vector<Problem> simt() {
  std::vector<Problem> list;
  const auto add = [&](const char* what, const AttentionCase& c) { list.push_back({what, "attention_simt", c}); };

  AttentionCase decode = problem(1, 333);
  decode.kv_lengths.values = {300};
  decode.sinks.values = {1, 4, -2, 0};
  add("decoding, splits", decode);

  AttentionCase few = everything(3, 60, 40, 33);
  few.offsets.values = {60, 4};
  few.bias.dtype = DType::f32;
  few.window.left = 20;
  add("everything, few rows", few);

  add("everything", everything(20, 100, 40, 33));
  add("NaN, few rows", not_finite(4, 80));
  add("NaN behind a bias of -inf", infinite_bias());
  add("lowest bias", lowest());
  add("scores of -inf", all_scores_infinite());
  add("large sinks", large_sinks());
  add("largest numbers, few rows", largest(4));
  add("largest numbers", largest(20));
  add("window, lengths", windowed());
  add("NaN", not_finite(45, 100));

  AttentionCase layouts = problem(20, 70, 37);
  layouts.q.twist = Twist::strided;
  layouts.k.order = Order::transposed;
  layouts.v.twist = Twist::unaligned;
  layouts.out.twist = Twist::unaligned;
  add("layouts", layouts);

  add("scores of millions", millions());
  add("two heads in a block", two_heads());
  return list;
}

std::vector<Problem> sm80() {
  std::vector<Problem> list;
  const auto plain = [&](const char* what, const AttentionCase& c) {
    list.push_back({std::string("plain: ") + what, "attention_sm80_plain", c});
  };
  const auto general = [&](const char* what, const AttentionCase& c) {
    list.push_back({std::string("general: ") + what, "attention_sm80_general", c});
  };

  AttentionCase steady = problem(20, 330);
  steady.heads = 2;
  steady.kv_heads = 1;
  steady.kv_lengths.values = {300};
  plain("steady tiles", steady);

  // Whole tiles from 128 to 319, seen from every row; the rows of two heads are one block.
  AttentionCase bounded = problem(31, 448);
  bounded.heads = 2;
  bounded.kv_heads = 1;
  bounded.align = Align::offsets;
  bounded.offsets.values = {180};
  bounded.window = {.left = 120, .right = 200};
  plain("steady tiles of a window", bounded);

  AttentionCase window = problem(25, 140);
  window.batch = 2;
  window.align = Align::bottom_right;
  window.window = {.left = 40, .right = 3};
  window.kv_lengths.values = {99, 1000};
  window.weights = kType;
  plain("window, lengths", window);

  general("everything", everything(20, 100, 40, 32));

  AttentionCase wide = problem(20, 330, 104, 72);
  wide.causal = true;
  wide.align = Align::bottom_right;
  plain("steady tiles, D 104", wide);

  plain("NaN", not_finite(20, 100));
  general("NaN behind a bias of -inf", infinite_bias());
  plain("largest numbers", largest(4));

  AttentionCase hundreds = problem(20, 100);
  hundreds.values = Values::fifty;
  hundreds.scale = 0.5;
  hundreds.causal = true;
  plain("scores of hundreds", hundreds);

  AttentionCase extreme = problem(9, 200);
  extreme.values = Values::extreme;
  extreme.weights = DType::f32;
  plain("scores of millions", extreme);

  AttentionCase whole = extreme;
  whole.bias.present = whole.bias.whole_numbers = true;
  general("scores of millions", whole);
  general("lowest bias", lowest());
  plain("scores of -inf", all_scores_infinite());
  general("scores of -inf", all_scores_infinite());
  general("large sinks", large_sinks());

  AttentionCase window_general = windowed();
  general("window, lengths", window_general);

  AttentionCase not_finite_general = not_finite(70, 200);
  not_finite_general.kv_heads = 4;
  not_finite_general.mask.present = true;
  general("NaN", not_finite_general);

  AttentionCase heads = two_heads();
  heads.sinks.values = {1, -1};
  general("two heads in a block", heads);

  AttentionCase blocks = problem(140, 100, 64, 32);
  blocks.align = Align::bottom_right;
  blocks.causal = true;
  general("row blocks of one head", blocks);
  return list;
}

}  // namespace

std::vector<Problem> problems_for(const std::string& family) { return family == "attention_simt" ? simt() : sm80(); }

}  // namespace mutants
