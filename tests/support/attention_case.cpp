#include "tests/support/attention_case.h"

#include <algorithm>
#include <cmath>
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
  simple.head_dim = random.pick<std::int64_t>({16, 32, 64});
  simple.value_dim = random.chance(0.8) ? simple.head_dim : 128;
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

std::vector<AttentionCase> with_siblings(const AttentionCase& c) {
  std::vector<AttentionCase> all{c};
  if (c.simple >= 0) all.push_back(simple_sibling(c));
  if (c.empty != EmptySize::none) all.push_back(emptied(c));
  for (AttentionCase& sibling : all) {
    sibling.simple = -1;
    sibling.empty = EmptySize::none;
    sibling.invalid = -1;
  }
  return all;
}

}  // namespace sorot::support
