#include "tests/support/features.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "sorot/tensor.h"

namespace sorot::support {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A case seen with its oracle, and the questions features ask about it.
struct Seen {
  const AttentionCase& c;
  const AttentionTensors& tensors;
  const DenseAttention& p;
  const AttentionOracle& o;
  DenseAttention frame;            ///< the problem without its q, k and v
  std::vector<char> bad_k, bad_v;  ///< by row of k and v: holds a NaN (1), an infinity (2)
  bool numbers = false;            ///< some row's result is a softmax over keys
  bool positions = false;          ///< something depends on where queries stand

  std::size_t rows() const { return o.lse.kind.size(); }
  std::size_t keys() const { return static_cast<std::size_t>(p.keys); }
  std::size_t head(std::size_t row) const {
    return row / static_cast<std::size_t>(p.queries) % static_cast<std::size_t>(p.heads);
  }
  bool ordinary(std::size_t row) const { return o.lse.kind[row] == Expect::number; }
  bool poisoned(std::size_t row) const { return o.lse.kind[row] == Expect::nan; }
  std::size_t key_row(std::size_t row, std::size_t j) const {
    const std::size_t b = row / static_cast<std::size_t>(p.queries * p.heads);
    return p.kv_head(static_cast<std::int64_t>(b), static_cast<std::int64_t>(head(row))) * keys() + j;
  }

  template <class Predicate>
  bool any_row(Predicate predicate) const {
    for (std::size_t row = 0; row < rows(); ++row) {
      if (predicate(row)) return true;
    }
    return false;
  }
  template <class Predicate>
  bool any_pair(bool attended, Predicate predicate) const {
    for (std::size_t pair = 0; pair < o.attended.size(); ++pair) {
      if ((o.attended[pair] != 0) == attended && predicate(pair / keys(), pair % keys())) return true;
    }
    return false;
  }

  /// Whether other pairs would be attended after a change to the problem.
  template <class Change>
  bool hides(Change change) const {
    DenseAttention changed = frame;
    change(changed);
    return attended_pairs(changed) != o.attended;
  }
};

struct Feature {
  std::string name;
  std::function<bool(const Seen&)> holds;
};

constexpr char kNaN = 1;
constexpr char kInf = 2;

/// Which kinds of non-finite numbers each row has.
std::vector<char> bad_rows(const std::vector<double>& values, std::int64_t width) {
  std::vector<char> bad;
  for (auto row = values.begin(); row != values.end(); row += width) {
    char kinds = 0;
    for (auto x = row; x != row + width; ++x) {
      if (!std::isfinite(*x)) kinds = static_cast<char>(kinds | (std::isnan(*x) ? kNaN : kInf));
    }
    bad.push_back(kinds);
  }
  return bad;
}

void add_sizes(std::vector<Feature>& list) {
  const auto number = [&](std::string name, auto holds) {
    list.push_back({std::move(name), [holds](const Seen& s) { return s.numbers && holds(s.c); }});
  };
  using Case = AttentionCase;
  number("heads: H = Hkv", [](const Case& c) { return c.heads == c.kv_heads && c.heads > 1; });
  number("heads: group 2", [](const Case& c) { return c.heads == 2 * c.kv_heads; });
  number("heads: group odd", [](const Case& c) { return c.heads / c.kv_heads > 1 && c.heads / c.kv_heads % 2 == 1; });
  number("heads: group of 8 and more", [](const Case& c) { return c.heads / c.kv_heads >= 8; });
  number("heads: multi-query", [](const Case& c) { return c.heads > 1 && c.kv_heads == 1; });
  number("D: 1", [](const Case& c) { return c.head_dim == 1; });
  number("D: odd", [](const Case& c) { return c.head_dim > 1 && c.head_dim % 2 == 1; });
  number("D: even, no multiple of 8", [](const Case& c) { return c.head_dim % 2 == 0 && c.head_dim % 8 != 0; });
  number("D: power of 2 from 8", [](const Case& c) { return c.head_dim >= 8 && (c.head_dim & (c.head_dim - 1)) == 0; });
  number("D: other multiple of 8",
         [](const Case& c) { return c.head_dim % 8 == 0 && (c.head_dim & (c.head_dim - 1)) != 0; });
  number("D: above 100", [](const Case& c) { return c.head_dim > 100; });
  number("Dv: 1", [](const Case& c) { return c.value_dim == 1; });
  number("Dv: below D", [](const Case& c) { return c.value_dim < c.head_dim; });
  number("Dv: above D", [](const Case& c) { return c.value_dim > c.head_dim; });
  constexpr std::pair<std::int64_t, std::int64_t> kRanges[] = {{1, 1},   {7, 9},   {15, 17},
                                                               {31, 33}, {63, 65}, {127, 129}};
  for (const auto& [first, last] : kRanges) {
    const std::string range =
        first == last ? std::to_string(first) : std::to_string(first) + ".." + std::to_string(last);
    if (last < 100) {
      number("Sq: " + range,
             [first = first, last = last](const Case& c) { return first <= c.queries && c.queries <= last; });
    }
    number("Skv: " + range, [first = first, last = last](const Case& c) { return first <= c.keys && c.keys <= last; });
  }
  list.push_back({"empty: B = 0", [](const Seen& s) { return s.c.batch == 0; }});
  list.push_back({"empty: H = 0", [](const Seen& s) { return s.c.heads == 0 && s.c.kv_heads > 0; }});
  list.push_back({"empty: H = Hkv = 0", [](const Seen& s) { return s.c.kv_heads == 0; }});
  list.push_back({"empty: Sq = 0", [](const Seen& s) { return s.c.queries == 0; }});
  list.push_back({"empty: Skv = 0", [](const Seen& s) { return s.c.keys == 0 && s.rows() > 0; }});
}

void add_positions(std::vector<Feature>& list) {
  const auto any_length = [](auto holds) {
    return [holds](const Seen& s) {
      return std::any_of(s.p.kv_lengths.begin(), s.p.kv_lengths.end(),
                         [&](std::int64_t length) { return s.rows() > 0 && s.keys() > 0 && holds(length, s.p.keys); });
    };
  };
  list.push_back({"align: top_left", [](const Seen& s) { return s.positions && s.p.align == Align::top_left; }});
  list.push_back({"align: bottom_right", [](const Seen& s) {
                    return s.positions && s.p.align == Align::bottom_right && s.p.keys != s.p.queries;
                  }});
  list.push_back({"align: offsets", [](const Seen& s) { return s.positions && s.p.align == Align::offsets; }});
  list.push_back({"align: offsets near the ends of i32", [](const Seen& s) {
                    return s.positions && std::any_of(s.p.offsets.begin(), s.p.offsets.end(),
                                                      [](std::int64_t o) { return std::abs(o) > 1'000'000'000; });
                  }});
  const auto no_causal = [](DenseAttention& p) { p.causal = false; };
  const auto no_left = [](DenseAttention& p) { p.window.left = -1; };
  const auto no_right = [](DenseAttention& p) { p.window.right = -1; };
  list.push_back({"causal", [=](const Seen& s) { return s.p.causal && s.hides(no_causal); }});
  list.push_back({"window: left", [=](const Seen& s) { return s.p.window.left >= 0 && s.hides(no_left); }});
  list.push_back({"window: right", [=](const Seen& s) { return s.p.window.right >= 0 && s.hides(no_right); }});
  list.push_back({"window: both", [=](const Seen& s) {
                    return s.p.window.left >= 0 && s.p.window.right >= 0 && s.hides(no_left) && s.hides(no_right);
                  }});
  list.push_back({"window: left, and causal", [=](const Seen& s) {
                    return s.p.causal && s.p.window.left >= 0 && s.hides(no_left) && s.hides(no_causal);
                  }});
  list.push_back(
      {"kv length: within", any_length([](std::int64_t n, std::int64_t keys) { return n > 0 && n < keys; })});
  list.push_back({"kv length: 0", any_length([](std::int64_t n, std::int64_t) { return n == 0; })});
  list.push_back({"kv length: negative", any_length([](std::int64_t n, std::int64_t) { return n < 0; })});
  list.push_back({"kv length: beyond Skv", any_length([](std::int64_t n, std::int64_t keys) { return n > keys; })});
}

bool is_full(const Broadcast& b) { return b.rank == 4 && b.full[0] && b.full[1] && b.full[2] && b.full[3]; }

void add_mask_and_bias(std::vector<Feature>& list) {
  const auto masks = [](const Seen& s) {
    return s.c.mask.present && s.hides([](DenseAttention& p) { p.mask.clear(); });
  };
  list.push_back({"mask: [B, H, Sq, Skv]", [=](const Seen& s) { return masks(s) && is_full(s.c.mask.broadcast); }});
  list.push_back({"mask: of lower rank", [=](const Seen& s) { return masks(s) && s.c.mask.broadcast.rank < 4; }});
  list.push_back({"mask: with sizes of 1", [=](const Seen& s) {
                    return masks(s) && s.c.mask.broadcast.rank == 4 && !is_full(s.c.mask.broadcast);
                  }});
  list.push_back({"mask: a whole row masked", [](const Seen& s) {
                    if (!s.c.mask.empty_row || s.p.mask.empty()) return false;
                    return s.any_row([&](std::size_t row) {
                      const auto begin = s.p.mask.begin() + static_cast<std::ptrdiff_t>(row * s.keys());
                      return std::all_of(begin, begin + s.p.keys, [](char m) { return m == 0; });
                    });
                  }});

  const auto biased = [](const Seen& s) { return s.numbers && s.c.bias.present; };
  list.push_back({"bias: of q's type", [=](const Seen& s) { return biased(s) && s.c.bias.dtype == s.c.dtype; }});
  list.push_back({"bias: f32", [=](const Seen& s) { return biased(s) && s.c.bias.dtype == DType::f32; }});
  list.push_back({"bias: [B, H, Sq, Skv]", [=](const Seen& s) { return biased(s) && is_full(s.c.bias.broadcast); }});
  list.push_back({"bias: of lower rank", [=](const Seen& s) { return biased(s) && s.c.bias.broadcast.rank < 4; }});
  list.push_back({"bias: with sizes of 1", [=](const Seen& s) {
                    return biased(s) && s.c.bias.broadcast.rank == 4 && !is_full(s.c.bias.broadcast);
                  }});
  const auto bias_at = [](const Seen& s, std::size_t row, std::size_t j) { return s.p.bias[row * s.keys() + j]; };
  const auto row_below = [=](const Seen& s, double above, double below) {
    return !s.p.bias.empty() && s.any_row([&](std::size_t row) {
      for (std::size_t j = 0; j < s.keys(); ++j) {
        const double x = bias_at(s, row, j);
        if (s.o.attended[row * s.keys() + j] != 0 && !(x > above && x < below)) return false;
      }
      return s.ordinary(row);
    });
  };
  const auto pair = [=](bool attended, auto holds) {
    return [=](const Seen& s) {
      return !s.p.bias.empty() &&
             s.any_pair(attended, [&](std::size_t row, std::size_t j) { return holds(s, row, bias_at(s, row, j)); });
    };
  };
  list.push_back({"bias: -inf at some keys", pair(false, [](const Seen& s, std::size_t row, double x) {
                    return x == -kInfinity && s.ordinary(row);
                  })});
  list.push_back({"bias: -inf in a whole row", [=](const Seen& s) {
                    return !s.p.bias.empty() && s.any_row([&](std::size_t row) {
                      const auto begin = s.p.bias.begin() + static_cast<std::ptrdiff_t>(row * s.keys());
                      return std::all_of(begin, begin + s.p.keys, [](double x) { return x == -kInfinity; });
                    });
                  }});
  list.push_back({"bias: -3.4e38 in a whole row", [=](const Seen& s) { return row_below(s, -kInfinity, -1e38); }});
  list.push_back({"bias: -1e9 at some keys", pair(true, [](const Seen& s, std::size_t row, double x) {
                    return x < -9e8 && x > -2e9 && s.ordinary(row);
                  })});
  list.push_back({"bias: -1e9 in a whole row", [=](const Seen& s) { return row_below(s, -2e9, -9e8); }});
  list.push_back({"bias: NaN", pair(true, [](const Seen&, std::size_t, double x) { return std::isnan(x); })});
  list.push_back({"bias: +Inf", pair(true, [](const Seen&, std::size_t, double x) { return x == kInfinity; })});
  list.push_back({"bias: NaN or +Inf where masked", pair(false, [](const Seen& s, std::size_t row, double x) {
                    return !s.poisoned(row) && (std::isnan(x) || x == kInfinity);
                  })});
}

void add_scores(std::vector<Feature>& list) {
  const auto number = [&](std::string name, auto holds) {
    list.push_back({std::move(name), [holds](const Seen& s) { return s.numbers && holds(s.c); }});
  };
  using Case = AttentionCase;
  number("scale: default", [](const Case& c) { return !c.scale; });
  number("scale: explicit", [](const Case& c) { return c.scale && *c.scale > 0; });
  number("scale: 0", [](const Case& c) { return c.scale == 0.0; });
  number("scale: negative", [](const Case& c) { return c.scale && *c.scale < 0; });
  number("softcap: around 1", [](const Case& c) { return c.softcap > 0 && c.softcap <= 2; });
  number("softcap: around 50", [](const Case& c) { return c.softcap > 2; });
  number("scores: 448 x 448", [](const Case& c) { return c.values == Values::extreme; });
  number("scores: subnormal", [](const Case& c) { return c.values == Values::tiny; });
  list.push_back({"scores: 50 and more", [](const Seen& s) {
                    return s.numbers && s.c.values == Values::fifty &&
                           *std::max_element(s.o.largest_score.begin(), s.o.largest_score.end()) >= 50;
                  }});

  const auto head_value = [&](std::string name, std::vector<double> DenseAttention::*values, auto holds) {
    list.push_back({std::move(name), [=](const Seen& s) {
                      return !(s.p.*values).empty() &&
                             s.any_row([&](std::size_t row) { return holds(s, row, (s.p.*values)[s.head(row)]); });
                    }});
  };
  using S = const Seen&;
  const auto slopes = &DenseAttention::alibi_slopes;
  head_value("ALiBi: positive slope", slopes, [](S s, std::size_t row, double x) { return s.ordinary(row) && x > 0; });
  head_value("ALiBi: slope 0", slopes, [](S s, std::size_t row, double x) { return s.ordinary(row) && x == 0; });
  head_value("ALiBi: negative slope", slopes, [](S s, std::size_t row, double x) { return s.ordinary(row) && x < 0; });
  const auto sinks = &DenseAttention::sinks;
  head_value("sink: finite", sinks,
             [](S s, std::size_t row, double x) { return s.ordinary(row) && std::fabs(x) < 10; });
  head_value("sink: large", sinks,
             [](S s, std::size_t row, double x) { return s.ordinary(row) && std::isfinite(x) && std::fabs(x) >= 50; });
  head_value("sink: -Inf", sinks, [](S s, std::size_t row, double x) { return s.ordinary(row) && x == -kInfinity; });
  head_value("sink: NaN", sinks, [](S, std::size_t, double x) { return std::isnan(x); });
  head_value("sink: +Inf", sinks, [](S, std::size_t, double x) { return x == kInfinity; });
  head_value("sink: beside no key", sinks,
             [](S s, std::size_t row, double x) { return s.o.lse.kind[row] == Expect::exact && std::isfinite(x); });
}

void add_placements(std::vector<Feature>& list) {
  for (const bool nan : {true, false}) {
    const std::string what = nan ? "NaN" : "Inf";
    const char kind = nan ? kNaN : kInf;
    list.push_back({what + " in q", [kind](const Seen& s) {
                      const std::vector<char> bad_q = bad_rows(s.p.q, s.p.head_dim);
                      return s.any_pair(true, [&](std::size_t row, std::size_t) { return (bad_q[row] & kind) != 0; });
                    }});
    const auto in_key = [kind](const Seen& s, std::size_t row, std::size_t j) {
      return (s.bad_k[s.key_row(row, j)] & kind) != 0;
    };
    const auto in_value = [kind](const Seen& s, std::size_t row, std::size_t j) {
      return (s.bad_v[s.key_row(row, j)] & kind) != 0;
    };
    list.push_back({what + " in a masked key", [=](const Seen& s) {
                      return s.any_pair(
                          false, [&](std::size_t row, std::size_t j) { return !s.poisoned(row) && in_key(s, row, j); });
                    }});
    list.push_back({what + " in an attended key", [=](const Seen& s) {
                      return s.any_pair(true, [&](std::size_t row, std::size_t j) { return in_key(s, row, j); });
                    }});
    list.push_back({what + " in a masked value", [=](const Seen& s) {
                      const auto dv = static_cast<std::size_t>(s.p.value_dim);
                      return s.any_pair(false, [&](std::size_t row, std::size_t j) {
                        if (s.poisoned(row) || !in_value(s, row, j)) return false;
                        for (std::size_t d = 0; d < dv; ++d) {
                          const double x = s.p.v[s.key_row(row, j) * dv + d];
                          if (!std::isfinite(x) && s.o.out.kind[row * dv + d] <= Expect::exact) return true;
                        }
                        return false;
                      });
                    }});
    list.push_back({what + " in an attended value", [=](const Seen& s) {
                      return s.any_pair(
                          true, [&](std::size_t row, std::size_t j) { return s.ordinary(row) && in_value(s, row, j); });
                    }});
  }
}

const StridedTensor* find(const Seen& s, const std::string& name) {
  for (const StridedTensor* tensor : s.tensors.inputs()) {
    if (tensor->name() == name) return tensor;
  }
  for (const StridedTensor* tensor : s.tensors.outputs()) {
    if (tensor->name() == name) return tensor;
  }
  return nullptr;
}

constexpr std::pair<Twist, const char*> kTwists[] = {{Twist::negative, "negative strides"},
                                                     {Twist::zero, "zero stride"},
                                                     {Twist::unaligned, "unaligned"},
                                                     {Twist::padded, "padded rows"},
                                                     {Twist::strided, "last stride 2"}};

void add_layouts(std::vector<Feature>& list) {
  struct Laid {
    const char* name;
    std::function<const Layout&(const AttentionCase&)> layout;
    bool output;
    bool four_dims;  ///< always of rank 4
  };
  using Case = AttentionCase;
  const Laid tensors[] = {{"q", [](const Case& c) -> const Layout& { return c.q; }, false, true},
                          {"k", [](const Case& c) -> const Layout& { return c.k; }, false, true},
                          {"v", [](const Case& c) -> const Layout& { return c.v; }, false, true},
                          {"out", [](const Case& c) -> const Layout& { return c.out; }, true, true},
                          {"lse", [](const Case& c) -> const Layout& { return c.lse_layout; }, true, false},
                          {"weights", [](const Case& c) -> const Layout& { return c.weights_layout; }, true, true},
                          {"mask", [](const Case& c) -> const Layout& { return c.mask.layout; }, false, false},
                          {"bias", [](const Case& c) -> const Layout& { return c.bias.layout; }, false, false}};
  for (const Laid& laid : tensors) {
    const std::string name = laid.name;
    const auto add = [&](const std::string& what, auto holds) {
      list.push_back({"layout: " + name + " " + what, [name, holds, layout = laid.layout](const Seen& s) {
                        const StridedTensor* tensor = find(s, name);
                        return s.numbers && tensor != nullptr && holds(*tensor, layout(s.c));
                      }});
    };
    const auto order = [&](const std::string& what, Order wanted) {
      add(what, [wanted](const StridedTensor& t, const Layout& layout) {
        return layout.order == wanted && takes_effect(wanted, t.shape());
      });
    };
    if (laid.four_dims) {
      order("[B, S, H, D]", Order::heads_inner);
      order("[B, H, D, S]", Order::transposed);
      if (!laid.output) order("slice of packed", Order::packed);
    } else {
      add("permuted", [](const StridedTensor& t, const Layout& layout) {
        return layout.order != Order::natural && takes_effect(layout.order, t.shape());
      });
    }
    for (const auto& [twist, what] : kTwists) {
      if (laid.output && twist == Twist::zero) continue;
      add(what, [twist = twist](const StridedTensor& t, const Layout& layout) {
        return layout.twist == twist && takes_effect(twist, t.shape(), t.strides());
      });
    }
  }
  list.push_back({"layout: q, k, v in one buffer", [](const Seen& s) {
                    return s.numbers &&
                           s.tensors.inputs()[0]->buffer().data() == s.tensors.inputs()[2]->buffer().data();
                  }});
  for (const auto& [twist, what] : kTwists) {
    if (twist == Twist::unaligned || twist == Twist::padded) continue;
    list.push_back({std::string("layout: a vector with ") + what, [twist = twist](const Seen& s) {
                      const std::pair<const char*, const VectorCase*> vectors[] = {{"kv_lengths", &s.c.kv_lengths},
                                                                                   {"offsets", &s.c.offsets},
                                                                                   {"alibi_slopes", &s.c.alibi_slopes},
                                                                                   {"sinks", &s.c.sinks}};
                      return s.numbers && std::any_of(std::begin(vectors), std::end(vectors), [&](const auto& vector) {
                               const StridedTensor* t = find(s, vector.first);
                               return t != nullptr && vector.second->layout.twist == twist &&
                                      takes_effect(twist, t->shape(), t->strides());
                             });
                    }});
  }
}

void add_outputs(std::vector<Feature>& list) {
  list.push_back(
      {"asked: out alone", [](const Seen& s) { return s.numbers && !s.c.lse && s.c.weights == DType::none; }});
  list.push_back({"asked: lse", [](const Seen& s) { return s.numbers && s.c.lse; }});
  list.push_back({"asked: weights of q's type", [](const Seen& s) { return s.numbers && s.c.weights == s.c.dtype; }});
  list.push_back({"asked: weights f32", [](const Seen& s) { return s.numbers && s.c.weights == DType::f32; }});
}

const std::vector<Feature>& features() {
  static const std::vector<Feature> list = [] {
    std::vector<Feature> features;
    add_sizes(features);
    add_positions(features);
    add_mask_and_bias(features);
    add_scores(features);
    add_placements(features);
    add_layouts(features);
    add_outputs(features);
    return features;
  }();
  return list;
}

}  // namespace

const std::vector<std::string>& attention_features() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Feature& feature : features()) list.push_back(feature.name);
    return list;
  }();
  return names;
}

std::vector<std::size_t> features_of(const AttentionCase& c, const AttentionTensors& tensors,
                                     const DenseAttention& problem, const AttentionOracle& oracle) {
  Seen seen{c,
            tensors,
            problem,
            oracle,
            problem,
            bad_rows(problem.k, problem.head_dim),
            bad_rows(problem.v, problem.value_dim)};
  seen.frame.q.clear();
  seen.frame.k.clear();
  seen.frame.v.clear();
  seen.numbers = seen.any_row([&](std::size_t row) { return seen.ordinary(row); });
  seen.positions =
      seen.rows() > 0 && seen.keys() > 0 &&
      (problem.causal || problem.window.left >= 0 || problem.window.right >= 0 || !problem.alibi_slopes.empty());
  std::vector<std::size_t> found;
  for (std::size_t f = 0; f < features().size(); ++f) {
    if (features()[f].holds(seen)) found.push_back(f);
  }
  return found;
}

}  // namespace sorot::support
