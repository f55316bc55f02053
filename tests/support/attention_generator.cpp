#include "tests/support/attention_generator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "tests/support/attention_tensors.h"
#include "tests/support/invalid_args.h"
#include "tests/support/oracle.h"
#include "tests/support/random.h"

namespace sorot::support {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kLowest = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kHighest = std::numeric_limits<std::int32_t>::max();

constexpr DType kDTypes[] = {DType::f32, DType::f16, DType::bf16, DType::f64};

/// Categories; their order and number do not matter, only that each is its own.
enum class Category : std::uint64_t {
  heads,
  queries,
  keys,
  head_dim,
  value_dim,
  values,
  q_order,
  k_order,
  v_order,
  out_order,
  lse_order,
  weights_order,
  mask_order,
  bias_order,
  q_twist,
  k_twist,
  v_twist,
  out_twist,
  lse_twist,
  weights_twist,
  mask_twist,
  bias_twist,
  vector_twist,
  align,
  pattern,
  lengths,
  mask_shape,
  mask_content,
  bias_shape,
  bias_type,
  bias_content,
  alibi,
  sinks,
  scale,
  softcap,
  weights_type,
  bad_query,
  bad_key,
  bad_value,
  bad_bias,
};

class Generator {
 public:
  Generator(std::uint64_t seed, std::uint64_t index, std::uint64_t attempt)
      : seed_(seed),
        dtype_number_(index % std::size(kDTypes)),
        n_(index / std::size(kDTypes)),
        random_({seed, index, attempt, 0xCA5E}) {
    c_.seed = random_.next();
    c_.dtype = kDTypes[dtype_number_];
  }

  AttentionCase make() {
    choose_sizes();
    choose_layouts();
    choose_positions();
    choose_mask();
    choose_scores();
    choose_bias();
    choose_heads_vectors();
    choose_outputs();
    choose_placements();
    fit();
    fill_vectors();
    choose_siblings();
    return c_;
  }

 private:
  /// The stratified choice: 0 <= result < count.
  std::size_t take(Category category, std::size_t count) const {
    Random random({seed_, dtype_number_, static_cast<std::uint64_t>(category), n_ / count});
    std::array<std::size_t, 8> order{};
    for (std::size_t i = 0; i < count; ++i) {
      const auto j = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i) + 1));
      order[i] = order[j];
      order[j] = i;
    }
    return order[n_ % count];
  }

  template <class T>
  T take(Category category, std::initializer_list<T> values) const {
    return values.begin()[take(category, values.size())];
  }

  void choose_sizes();
  void choose_layouts();
  void choose_positions();
  void choose_mask();
  void choose_scores();
  void choose_bias();
  void choose_heads_vectors();
  void choose_outputs();
  void choose_placements();
  void fit();
  void fill_vectors();
  void choose_siblings();

  Broadcast broadcast(std::size_t kind, bool needs_rows);
  std::vector<double> slopes();

  std::uint64_t seed_;
  std::uint64_t dtype_number_;
  std::uint64_t n_;
  Random random_;
  AttentionCase c_;

  enum class Lengths { absent, within, zero, out_of_range } lengths_ = Lengths::absent;
  enum class Offsets { none, near, far } offsets_ = Offsets::none;
  enum class Slopes { absent, positive, with_zero, negative } slopes_ = Slopes::absent;
  enum class Sinks { absent, finite, large, with_none, bad } sinks_ = Sinks::absent;
  bool bad_key_attended_ = false;
};

void Generator::choose_sizes() {
  switch (take(Category::heads, 5)) {
    case 0:  // as many kv heads as query heads
      c_.heads = c_.kv_heads = random_.between(1, 3);
      break;
    case 1:
      c_.kv_heads = random_.between(1, 3);
      c_.heads = 2 * c_.kv_heads;
      break;
    case 2:
      c_.kv_heads = random_.between(1, 2);
      c_.heads = random_.pick({3, 5, 7}) * c_.kv_heads;
      break;
    case 3: c_.heads = random_.pick({8, 9, 16}); break;
    case 4: c_.heads = random_.between(2, 4); break;  // multi-query
  }
  c_.batch = random_.pick({1, 1, 1, 2, 2, 3});
  if (c_.batch * c_.kv_heads == 1 && random_.chance(0.7)) c_.batch = 2;
  switch (take(Category::queries, 6)) {
    case 0: c_.queries = 1; break;
    case 1: c_.queries = random_.between(2, 6); break;
    case 2: c_.queries = random_.between(7, 9); break;
    case 3: c_.queries = random_.between(15, 17); break;
    case 4: c_.queries = random_.between(31, 33); break;
    case 5: c_.queries = random_.between(63, 65); break;
  }
  switch (take(Category::keys, 6)) {
    case 0: c_.keys = random_.between(2, 6); break;
    case 1: c_.keys = random_.between(7, 9); break;
    case 2: c_.keys = random_.between(15, 17); break;
    case 3: c_.keys = random_.between(31, 33); break;
    case 4: c_.keys = random_.between(63, 65); break;
    case 5: c_.keys = random_.between(127, 129); break;
  }
  switch (take(Category::head_dim, 6)) {
    case 0: c_.head_dim = 1; break;
    case 1: c_.head_dim = random_.pick({3, 5, 7, 13, 33}); break;
    case 2: c_.head_dim = random_.pick({8, 16, 32, 64}); break;
    case 3: c_.head_dim = random_.pick({40, 72, 80, 88, 96}); break;
    case 4: c_.head_dim = random_.pick({2, 4, 12, 20, 100}); break;
    case 5: c_.head_dim = random_.pick({112, 128, 160, 192, 200, 256}); break;
  }
  switch (take(Category::value_dim, 5)) {
    case 0:
    case 1: c_.value_dim = c_.head_dim; break;
    case 2: c_.value_dim = c_.head_dim + random_.pick({1, 5, 8, 16}); break;
    case 3: c_.value_dim = c_.head_dim == 1 ? 1 : random_.between(1, c_.head_dim - 1); break;
    case 4: c_.value_dim = 1; break;
  }
  c_.values = take(Category::values, {Values::unit, Values::fifty, Values::fifty, Values::extreme, Values::tiny});
}

void Generator::choose_layouts() {
  const auto order = [&](Category category) {
    return take(category, {Order::natural, Order::heads_inner, Order::transposed, Order::packed});
  };
  const auto twist = [&](Category category) {
    return take(category, {Twist::negative, Twist::zero, Twist::unaligned, Twist::padded, Twist::strided});
  };
  c_.q = {order(Category::q_order), twist(Category::q_twist), static_cast<std::int32_t>(random_.below(3))};
  c_.k = {order(Category::k_order), twist(Category::k_twist), static_cast<std::int32_t>(random_.below(3))};
  c_.v = {order(Category::v_order), twist(Category::v_twist), static_cast<std::int32_t>(random_.below(3))};
  c_.out.order = take(Category::out_order, {Order::natural, Order::heads_inner, Order::transposed});
  c_.out.twist =
      take(Category::out_twist, {Twist::none, Twist::negative, Twist::unaligned, Twist::padded, Twist::strided});
}

void Generator::choose_positions() {
  switch (take(Category::align, 5)) {
    case 0:
    case 1: c_.align = Align::top_left; break;
    case 2: c_.align = Align::bottom_right; break;
    case 3: offsets_ = Offsets::near; break;
    case 4: offsets_ = Offsets::far; break;
  }
  lengths_ = take(Category::lengths,
                  {Lengths::absent, Lengths::absent, Lengths::within, Lengths::zero, Lengths::out_of_range});
  const std::size_t pattern = take(Category::pattern, 6);
  const bool left = pattern == 2 || pattern == 4 || pattern == 5;
  const bool right = pattern == 3 || pattern == 4;
  c_.causal = pattern == 1 || pattern == 5;
  // A single query at the first key sees no left bound, one at the last key no right bound.
  const bool single = c_.queries <= 2 && ((left && c_.align == Align::top_left) ||
                                          ((right || c_.causal) && c_.align == Align::bottom_right));
  if (single && offsets_ == Offsets::none) offsets_ = Offsets::near;
  if (offsets_ != Offsets::none) c_.align = Align::offsets;
  const std::int64_t reach = std::min<std::int64_t>(c_.queries + c_.keys, 12) / 3;
  if (left) c_.window.left = static_cast<std::int32_t>(random_.between(0, std::max<std::int64_t>(0, reach - 1)));
  if (right) c_.window.right = static_cast<std::int32_t>(random_.between(0, std::max<std::int64_t>(0, reach - 1)));
}

/// Full, of lower rank, or with sizes of 1; with `needs_rows` one row of queries stays apart from the others.
Broadcast Generator::broadcast(std::size_t kind, bool needs_rows) {
  Broadcast result;
  if (kind == 1) result.rank = static_cast<std::int32_t>(random_.between(needs_rows ? 2 : 1, 3));
  if (kind == 2) {
    const auto first = static_cast<std::size_t>(random_.below(needs_rows ? 2 : 3));
    result.full[first] = false;
    if (random_.chance(0.3)) result.full[random_.below(2)] = false;
  }
  return result;
}

void Generator::choose_mask() {
  const std::size_t content = take(Category::mask_content, 4);
  c_.mask.layout.twist = take(Category::mask_twist, {Twist::none, Twist::negative, Twist::zero, Twist::unaligned,
                                                     Twist::padded, Twist::strided});
  c_.mask.present = c_.mask.layout.twist != Twist::none || content == 2 || random_.chance(0.3);
  c_.mask.empty_row = content == 2;
  c_.mask.density = content == 3 ? 0.9 : 0.75;
  c_.mask.layout.order = take(Category::mask_order, {Order::natural, Order::heads_inner, Order::transposed});
  c_.mask.broadcast =
      broadcast(take(Category::mask_shape, 3), c_.mask.empty_row || c_.mask.layout.twist == Twist::padded);
  const bool rows = c_.mask.empty_row || c_.mask.layout.twist == Twist::padded;
  if (rows && c_.queries == 1) c_.mask.broadcast = {};
  // Broadcast keys keep an empty row one row.
  c_.mask.layout.zero_dim =
      c_.mask.empty_row ? c_.mask.broadcast.rank - 1 : static_cast<std::int32_t>(random_.below(c_.mask.broadcast.rank));
}

void Generator::choose_scores() {
  const double unit = 1 / std::sqrt(static_cast<double>(c_.head_dim));
  switch (take(Category::scale, 5)) {
    case 0:
    case 1: break;
    case 2: c_.scale = (0.5 + random_.uniform()) * unit; break;
    case 3: c_.scale = 0; break;
    case 4: c_.scale = -(0.5 + random_.uniform()) * unit; break;
  }
  if (c_.values == Values::extreme && c_.scale != 0.0) {  // a power of two keeps these scores exact
    c_.scale = c_.scale && *c_.scale < 0 ? -0.125 : 0.125;
  }
  switch (take(Category::softcap, 4)) {
    case 0:
    case 1: break;
    case 2: c_.softcap = 0.25 + random_.uniform(); break;
    case 3: c_.softcap = (c_.values == Values::fifty ? 70 : 30) + 20 * random_.uniform(); break;
  }
}

void Generator::choose_bias() {
  BiasCase& bias = c_.bias;
  const std::size_t content = take(Category::bias_content, 4);
  const std::size_t bad = take(Category::bad_bias, 6);
  bias.layout.twist = take(Category::bias_twist, {Twist::none, Twist::negative, Twist::zero, Twist::unaligned,
                                                  Twist::padded, Twist::strided});
  bias.present = bias.layout.twist != Twist::none || content >= 2 || bad >= 2 || random_.chance(0.3);
  bias.dtype = take(Category::bias_type, 2) == 0 ? c_.dtype : DType::f32;
  bias.whole_numbers = c_.values == Values::extreme;
  bias.infinite_entries = content == 2;
  bias.infinite_row = bias.billion_entries = content == 3;
  bias.lowest_row = content >= 2;
  bias.billion_row = content >= 2;
  if (c_.dtype == DType::f16 && content >= 2) bias.dtype = DType::f32;  // f16 ends at 65504
  const bool rows = content >= 2;
  bias.layout.order = take(Category::bias_order, {Order::natural, Order::heads_inner, Order::transposed});
  bias.broadcast =
      broadcast(take<std::size_t>(Category::bias_shape, {0, 1, 1, 2, 2}), rows || bias.layout.twist == Twist::padded);
  if (bad == 3 || bad == 4 || (rows && c_.queries < 3)) bias.broadcast = {};
  // A row stays one row if it is the keys that repeat; one key stays one key if they do not.
  if (bad >= 2 && !rows && bias.broadcast.rank == 1) bias.broadcast.rank = 2;
  const bool repeat_keys = rows || bad == 3 || bad == 4 || bias.broadcast.rank == 1;
  bias.layout.zero_dim = bias.broadcast.rank - (repeat_keys ? 1 : 2);
  switch (bad) {
    case 3: c_.placements.push_back({Place::attended_bias, kNaN}); break;
    case 4: c_.placements.push_back({Place::attended_bias, kInfinity}); break;
    case 2:
    case 5: c_.placements.push_back({Place::masked_bias, random_.pick({kNaN, kInfinity})}); break;
    default: break;
  }
}

void Generator::choose_heads_vectors() {
  slopes_ =
      take(Category::alibi, {Slopes::absent, Slopes::absent, Slopes::positive, Slopes::with_zero, Slopes::negative});
  sinks_ = take(Category::sinks, {Sinks::absent, Sinks::finite, Sinks::large, Sinks::with_none, Sinks::bad});
  const auto twist = [&](std::size_t shift) {
    constexpr Twist kTwists[] = {Twist::none, Twist::negative, Twist::zero, Twist::strided};
    return Layout{Order::natural, kTwists[(take(Category::vector_twist, 4) + shift) % 4], 0};
  };
  c_.kv_lengths.layout = twist(0);
  c_.offsets.layout = twist(1);
  c_.alibi_slopes.layout = twist(2);
  c_.sinks.layout = twist(3);
  // Values that differ by sequence or head would collapse into one.
  if (lengths_ == Lengths::zero || lengths_ == Lengths::out_of_range) c_.kv_lengths.layout.twist = Twist::none;
  if (offsets_ == Offsets::far) c_.offsets.layout.twist = Twist::none;
  if (slopes_ == Slopes::with_zero || slopes_ == Slopes::negative) {
    if (c_.alibi_slopes.layout.twist == Twist::zero) c_.alibi_slopes.layout.twist = Twist::negative;
  }
  if (sinks_ != Sinks::finite && c_.sinks.layout.twist == Twist::zero) c_.sinks.layout.twist = Twist::strided;
}

void Generator::choose_outputs() {
  constexpr Twist kTwists[] = {Twist::none, Twist::negative, Twist::unaligned, Twist::padded, Twist::strided};
  c_.lse_layout.twist = kTwists[take(Category::lse_twist, 5)];
  c_.weights_layout.twist = kTwists[take(Category::weights_twist, 5)];
  c_.lse = c_.lse_layout.twist != Twist::none || random_.chance(0.2);
  const DType type = take(Category::weights_type, 2) == 0 ? c_.dtype : DType::f32;
  c_.weights = c_.weights_layout.twist != Twist::none || random_.chance(0.2) ? type : DType::none;
  c_.lse_layout.order = take(Category::lse_order, {Order::natural, Order::heads_inner});
  c_.weights_layout.order = take(Category::weights_order, {Order::natural, Order::heads_inner, Order::transposed});
}

void Generator::choose_placements() {
  const double infinity = random_.pick({kInfinity, -kInfinity});
  switch (take(Category::bad_query, 6)) {
    case 4: c_.placements.push_back({Place::query, kNaN}); break;
    case 5: c_.placements.push_back({Place::query, infinity}); break;
    default: break;
  }
  constexpr Place kKey[] = {Place::query, Place::masked_key, Place::masked_key, Place::attended_key,
                            Place::attended_key};
  constexpr Place kValue[] = {Place::query, Place::masked_value, Place::masked_value, Place::attended_value,
                              Place::attended_value};
  std::size_t key = take(Category::bad_key, 5);         // 0: none; odd: NaN, even: infinity
  if (key >= 3 && c_.k.twist == Twist::zero) key -= 2;  // attended everywhere, it would leave no number to look at
  const std::size_t value = take(Category::bad_value, 5);
  if (key > 0) c_.placements.push_back({kKey[key], key % 2 == 1 ? kNaN : infinity});
  if (value > 0) c_.placements.push_back({kValue[value], value % 2 == 1 ? kNaN : infinity});
  bad_key_attended_ = key >= 3;
  // A broadcast over the keys would spread one bad key over all of them.
  if (key > 0) c_.k.zero_dim = static_cast<std::int32_t>(random_.below(2));
  if (value > 0) c_.v.zero_dim = static_cast<std::int32_t>(random_.below(2));
  const bool spreads = (key > 0 && c_.k.twist == Twist::zero) || (value > 0 && c_.v.twist == Twist::zero);
  if (spreads && c_.batch * c_.kv_heads == 1) c_.batch = 2;

  const bool needs_masked = std::any_of(c_.placements.begin(), c_.placements.end(), [](const Placement& p) {
    return p.place == Place::masked_key || p.place == Place::masked_value || p.place == Place::masked_bias;
  });
  if (needs_masked && lengths_ == Lengths::absent) lengths_ = Lengths::within;
}

/// Sizes yield to what the properties need to be seen beside each other.
void Generator::fit() {
  const bool spoils_batch = lengths_ == Lengths::zero || lengths_ == Lengths::out_of_range || offsets_ == Offsets::far;
  std::int64_t batches = spoils_batch ? 2 : 1;
  if (bad_key_attended_) ++batches;
  c_.batch = std::max(c_.batch, batches);
  const std::int64_t heads = sinks_ == Sinks::bad ? 3 : sinks_ == Sinks::with_none ? 2 : 1;
  const std::int64_t slopes = slopes_ == Slopes::with_zero || slopes_ == Slopes::negative ? 2 : 1;
  const std::int64_t group = c_.heads / c_.kv_heads;
  while (c_.heads < std::max(heads, slopes)) {
    ++c_.kv_heads;
    c_.heads += group;
  }
  const auto work = [&] { return c_.batch * c_.heads * c_.queries * c_.keys * (c_.head_dim + c_.value_dim); };
  constexpr std::int64_t kMostWork = 8'000'000;
  while (work() > kMostWork && c_.batch > batches) --c_.batch;
  if (work() > kMostWork && group > 8) c_.heads = 8 * c_.kv_heads;
  if (work() > kMostWork && c_.head_dim > 112) {
    c_.value_dim = std::max<std::int64_t>(1, c_.value_dim - c_.head_dim + 112);
    c_.head_dim = 112;
  }
}

/// Slopes whose products stay below about 16 for the longest distance, or are whole numbers beside extreme scores.
std::vector<double> Generator::slopes() {
  const auto near = static_cast<double>(c_.queries + 2 * c_.keys);
  const double distance = offsets_ == Offsets::far ? 0x1p31 : near;
  std::vector<double> slopes;
  for (std::int64_t h = 0; h < c_.heads; ++h) {
    double slope = c_.values == Values::extreme && offsets_ != Offsets::far
                       ? static_cast<double>(random_.between(1, 2))
                       : std::ldexp(1.0, -static_cast<int>(h % 4)) * 16 / distance;
    if (slopes_ == Slopes::with_zero && h % 2 == 1) slope = 0;
    if (slopes_ == Slopes::negative && h % 2 == 0) slope = -slope;
    slopes.push_back(slope);
  }
  return slopes;
}

void Generator::fill_vectors() {
  for (std::int64_t b = 0; b < c_.batch; ++b) {
    std::int64_t length = random_.between((c_.keys + 1) / 2, c_.keys - 1);
    if (b == 0 && lengths_ == Lengths::zero) length = 0;
    if (b == 0 && lengths_ == Lengths::out_of_range) length = random_.pick({kLowest, std::int64_t{-1}});
    if (b == 1 && lengths_ == Lengths::out_of_range) length = random_.pick({kHighest, c_.keys + 1});
    if (lengths_ != Lengths::absent) c_.kv_lengths.values.push_back(static_cast<double>(length));

    const std::int64_t real = lengths_ == Lengths::absent ? c_.keys : std::clamp<std::int64_t>(length, 1, c_.keys);
    std::int64_t offset = random_.between(real / 3, real - 1) - c_.queries / 2;
    if (b == 0 && offsets_ == Offsets::far) {
      offset = random_.pick({kLowest, kLowest + 1, kHighest, kHighest - c_.queries, -kHighest / 2});
    }
    if (offsets_ != Offsets::none) c_.offsets.values.push_back(static_cast<double>(offset));
  }
  if (slopes_ != Slopes::absent) c_.alibi_slopes.values = slopes();
  for (std::int64_t h = 0; h < c_.heads && sinks_ != Sinks::absent; ++h) {
    double sink = random_.normal();
    if (sinks_ == Sinks::large) sink = random_.pick({80.0, -80.0, 1e4, -1e4, 300.0});
    if (sinks_ == Sinks::with_none && h % 2 == 0) sink = -kInfinity;
    if (sinks_ == Sinks::bad && h == 0) sink = kNaN;
    if (sinks_ == Sinks::bad && h == 1) sink = kInfinity;
    c_.sinks.values.push_back(sink);
  }
}

void Generator::choose_siblings() {
  c_.simple = static_cast<std::int32_t>(n_ % 15);
  c_.aligned = static_cast<std::int32_t>(n_ % 7);
  constexpr EmptySize kEmpty[] = {EmptySize::batch, EmptySize::heads, EmptySize::all_heads, EmptySize::queries,
                                  EmptySize::keys};
  c_.empty = kEmpty[n_ % std::size(kEmpty)];
  c_.invalid = static_cast<std::int32_t>(n_ % invalid_args().size());
}

/// Whether some query attends a key and nothing it reads is bad: a case of NaN and empty rows alone shows little.
bool leaves_a_number(const AttentionCase& c) {
  const DenseAttention p = AttentionTensors(c).dense();
  const std::vector<char> attended = attended_pairs(p);
  const auto keys = static_cast<std::size_t>(p.keys);
  const auto finite = [width = static_cast<std::size_t>(p.head_dim)](const std::vector<double>& rows, std::size_t row) {
    return std::all_of(rows.begin() + static_cast<std::ptrdiff_t>(row * width),
                       rows.begin() + static_cast<std::ptrdiff_t>((row + 1) * width),
                       [](double x) { return std::isfinite(x); });
  };
  for (std::size_t row = 0; row < attended.size() / keys; ++row) {
    const std::size_t head = row / static_cast<std::size_t>(p.queries);
    const auto b = static_cast<std::int64_t>(head) / p.heads;
    const auto h = static_cast<std::int64_t>(head) % p.heads;
    const double sink = p.sinks.empty() ? 0 : p.sinks[static_cast<std::size_t>(h)];
    bool good = finite(p.q, row) && sink < kInfinity;
    bool any = false;
    for (std::size_t j = 0; good && j < keys; ++j) {
      if (attended[row * keys + j] == 0) continue;
      any = true;
      good = finite(p.k, p.kv_head(b, h) * keys + j) && (p.bias.empty() || std::isfinite(p.bias[row * keys + j]));
    }
    if (good && any) return true;
  }
  return false;
}

}  // namespace

AttentionCase generate_attention_case(std::uint64_t seed, std::uint64_t index) {
  constexpr std::uint64_t kAttempts = 8;
  for (std::uint64_t attempt = 0; attempt + 1 < kAttempts; ++attempt) {
    AttentionCase c = Generator(seed, index, attempt).make();
    if (leaves_a_number(c)) return c;
  }
  return Generator(seed, index, kAttempts - 1).make();
}

}  // namespace sorot::support
