#include "tests/support/attention_case.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "tests/support/random.h"

namespace sorot::support {
namespace {

/// What every fast kernel serves: alignment, causal, window, lengths and scale, over ordinary layouts.
AttentionCase simple_sibling(const AttentionCase& c) {
  AttentionCase simple;
  Random random({c.seed, 0x51B1});
  simple.seed = c.seed + 1;
  simple.dtype = c.dtype;
  simple.batch = random.between(1, 2);
  simple.kv_heads = random.between(2, 3);
  simple.heads = simple.kv_heads * random.between(1, 2);
  simple.queries = random.pick<std::int64_t>({1, 1, 2, 3, 5, 18, 34, 70});
  simple.keys = c.simple < 5 ? 1 : random.pick<std::int64_t>({2, 3, 4, 6, 10, 18, 40, 130});
  simple.head_dim = random.pick<std::int64_t>({16, 32, 64, 80, 128, 192, 256});
  simple.value_dim = random.chance(0.6) ? simple.head_dim : random.pick<std::int64_t>({64, 128});
  simple.align = c.align == Align::offsets ? Align::bottom_right : c.align;
  simple.causal = c.causal;
  simple.window = c.window;
  if (random.chance(0.5)) {
    simple.batch = 2;
    constexpr Twist kTwists[] = {Twist::none, Twist::negative, Twist::zero, Twist::strided};
    simple.kv_lengths.layout.twist = kTwists[random.below(4)];
    for (std::int64_t b = 0; b < simple.batch; ++b) {
      simple.kv_lengths.values.push_back(static_cast<double>(random.between(simple.keys == 1 ? 1 : 0, simple.keys)));
    }
  }
  simple.lse = random.chance(0.5);
  if (random.chance(0.25)) simple.weights = c.dtype;
  const Layout heads_inner{Order::heads_inner, Twist::none, 0};
  const Layout transposed{Order::transposed, Twist::none, 0};
  const Layout packed{Order::packed, Twist::none, 0};
  switch (c.simple % 5) {
    case 1: simple.q = simple.k = simple.v = simple.out = simple.weights_layout = heads_inner; break;
    case 2: simple.v = heads_inner; break;
    case 3: simple.q = simple.k = simple.v = packed; break;
    case 4: simple.q = simple.k = simple.v = simple.out = simple.weights_layout = transposed; break;
    default: break;
  }
  return simple;
}

/// The type of tensor cores that stands in for a case's own.
DType half_type(const AttentionCase& c) {
  if (c.dtype == DType::f16 || c.dtype == DType::bf16) return c.dtype;
  return c.seed % 2 == 0 ? DType::f16 : DType::bf16;
}

/// The simple sibling again, with other numbers, where kernels for tensor cores serve it.
AttentionCase simple_aligned_sibling(const AttentionCase& c) {
  AttentionCase other = c;
  other.seed = c.seed ^ 0x5A5A'5A5A;
  other.simple = c.aligned % 4 + 5;
  other.dtype = half_type(c);
  AttentionCase simple = simple_sibling(other);
  if (c.aligned % 2 == 1) simple.weights = simple.dtype;
  return simple;
}

/// What kernels for tensor cores serve: the case with f16 or bf16 rows of whole 16-byte vectors.
AttentionCase aligned_sibling(const AttentionCase& c) {
  AttentionCase aligned = c;
  Random random({c.seed, 0xA119});
  aligned.dtype = half_type(c);
  if (aligned.bias.dtype != DType::f32) aligned.bias.dtype = aligned.dtype;
  if (aligned.weights != DType::none && aligned.weights != DType::f32) aligned.weights = aligned.dtype;
  for (Layout* layout : {&aligned.q, &aligned.k, &aligned.v, &aligned.out}) {
    if (layout->twist != Twist::zero) layout->twist = Twist::none;
    layout->zero_dim %= 3;  // never the columns
    if (layout->order == Order::transposed) layout->order = Order::heads_inner;
  }
  constexpr std::int64_t kDims[][2] = {{16, 16}, {64, 64}, {96, 96}, {128, 128}, {192, 192}, {256, 256}, {192, 128}};
  const auto& dims = kDims[c.aligned % static_cast<std::int32_t>(std::size(kDims))];
  constexpr std::int64_t kMostWork = 4'000'000;
  const bool fits = c.batch * c.heads * c.queries * c.keys * (dims[0] + dims[1]) <= kMostWork;
  aligned.head_dim = fits ? dims[0] : 64;
  aligned.value_dim = fits ? dims[1] : 64;
  // A softcap that is small beside the rounding of the products it takes leaves nothing to judge lse by.
  if (c.values == Values::fifty && aligned.softcap > 0) aligned.softcap = std::max(aligned.softcap, 20.0);
  if (random.chance(0.2)) aligned.value_dim -= 8;
  if (random.chance(0.2) && aligned.head_dim > 8) aligned.head_dim -= 8;
  return aligned;
}

AttentionCase emptied(AttentionCase c) {
  c.placements.clear();
  switch (c.empty) {
    case EmptySize::none: break;
    case EmptySize::batch:
      c.batch = 0;
      c.kv_lengths.values.clear();
      c.offsets.values.clear();
      if (c.align == Align::offsets) c.align = Align::top_left;
      break;
    case EmptySize::all_heads: c.kv_heads = 0; [[fallthrough]];
    case EmptySize::heads:
      c.heads = 0;
      c.alibi_slopes.values.clear();
      c.sinks.values.clear();
      break;
    case EmptySize::queries: c.queries = 0; break;
    case EmptySize::keys: c.keys = 0; break;
  }
  return c;
}

}  // namespace

bool Placement::operator==(const Placement& other) const {
  return place == other.place && (value == other.value || (std::isnan(value) && std::isnan(other.value)));
}

std::vector<Sibling> with_siblings(const AttentionCase& c) {
  std::vector<Sibling> all{{"", c}};
  if (c.simple >= 0) all.push_back({"simple sibling: ", simple_sibling(c)});
  if (c.aligned >= 0) {
    all.push_back({"aligned sibling: ", aligned_sibling(c)});
    all.push_back({"simple aligned sibling: ", simple_aligned_sibling(c)});
  }
  if (c.empty != EmptySize::none) all.push_back({"empty sibling: ", emptied(c)});
  for (Sibling& sibling : all) {
    sibling.description.simple = -1;
    sibling.description.aligned = -1;
    sibling.description.empty = EmptySize::none;
    sibling.description.invalid = -1;
  }
  return all;
}

}  // namespace sorot::support
