#include "tests/support/attention_tensors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/support/placement.h"
#include "tests/support/random.h"
#include "tests/support/read_args.h"
#include "tests/support/storage.h"

namespace sorot::support {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum Stream : std::uint64_t { kQuery, kKey, kValue, kMask, kBias };

std::size_t count(const std::vector<std::int64_t>& shape) {
  std::size_t product = 1;
  for (const std::int64_t size : shape) product *= static_cast<std::size_t>(size);
  return product;
}

/// Normal numbers of the storage type end here.
double smallest_normal(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-1022;
    case DType::f16: return 0x1p-14;
    default: return 0x1p-126;
  }
}

void fill_normal(StridedTensor& tensor, Random random, double factor) {
  for (std::size_t e = 0; e < tensor.size(); ++e) tensor.set(e, random.normal() * factor);
}

/// Rows of +-448, each of one sign: scores are whole multiples of 448^2, exact in f32 under a power-of-two scale.
void fill_rows(StridedTensor& tensor, Random random, bool both_signs) {
  const auto row = static_cast<std::size_t>(tensor.shape().back());
  double value = 448;
  for (std::size_t e = 0; e < tensor.size(); ++e) {
    if (e % row == 0 && both_signs) value = random.pick({448.0, -448.0});
    tensor.set(e, value);
  }
}

std::unique_ptr<StridedTensor> make_vector(const char* name, DType dtype, const VectorCase& vector) {
  if (vector.values.empty()) return nullptr;
  const std::vector<std::int64_t> shape{static_cast<std::int64_t>(vector.values.size())};
  auto tensor = std::make_unique<StridedTensor>(name, dtype, shape, vector.layout);
  for (std::size_t e = 0; e < tensor->size(); ++e) tensor->set(e, vector.values[e]);
  return tensor;
}

std::vector<std::int64_t> shape_of(const Broadcast& broadcast, const AttentionCase& c) {
  const std::array<std::int64_t, 4> pairs{c.batch, c.heads, c.queries, c.keys};
  std::vector<std::int64_t> shape;
  for (std::size_t d = 4 - static_cast<std::size_t>(broadcast.rank); d < 4; ++d) {
    shape.push_back(broadcast.full[d] ? pairs[d] : 1);
  }
  return shape;
}

ConstTensorView view_of(const std::unique_ptr<StridedTensor>& tensor) {
  return tensor ? ConstTensorView(tensor->view()) : ConstTensorView();
}

}  // namespace

AttentionTensors::AttentionTensors(const AttentionCase& c) : case_(c) {
  make_qkv(c);
  kv_lengths_ = make_vector("kv_lengths", DType::i32, c.kv_lengths);
  offsets_ = make_vector("offsets", DType::i32, c.offsets);
  alibi_slopes_ = make_vector("alibi_slopes", DType::f32, c.alibi_slopes);
  sinks_ = make_vector("sinks", DType::f32, c.sinks);
  if (c.mask.present) make_mask(c);
  if (c.bias.present) make_bias(c);

  const std::vector<std::int64_t> rows{c.batch, c.heads, c.queries};
  out_ = std::make_unique<StridedTensor>("out", c.dtype,
                                         std::vector<std::int64_t>{c.batch, c.heads, c.queries, c.value_dim}, c.out);
  const DType lse_type = c.dtype == DType::f64 ? DType::f64 : DType::f32;
  if (c.lse) lse_ = std::make_unique<StridedTensor>("lse", lse_type, rows, c.lse_layout);
  if (c.weights != DType::none) {
    weights_ = std::make_unique<StridedTensor>(
        "weights", c.weights, std::vector<std::int64_t>{c.batch, c.heads, c.queries, c.keys}, c.weights_layout);
  }
  put(c);
  for (const StridedTensor* tensor : inputs()) {
    const GuardedBuffer& buffer = tensor->buffer();
    snapshots_.emplace_back(buffer.data(), buffer.data() + buffer.size());
  }
}

void AttentionTensors::make_qkv(const AttentionCase& c) {
  const std::vector<std::int64_t> q{c.batch, c.heads, c.queries, c.head_dim};
  const std::vector<std::int64_t> k{c.batch, c.kv_heads, c.keys, c.head_dim};
  const std::vector<std::int64_t> v{c.batch, c.kv_heads, c.keys, c.value_dim};
  const Layout packed{Order::packed, Twist::none, 0};
  if (c.q == packed && c.k == packed && c.v == packed && count(q) * count(k) > 0) {
    // One buffer [B, S, H + 2 Hkv, D], as a fused projection writes it; the shorter of Sq, Skv and of D, Dv leave gaps.
    const std::int64_t width = std::max(c.head_dim, c.value_dim);
    const std::int64_t row = (c.heads + 2 * c.kv_heads) * width;
    const std::int64_t sequence = std::max(c.queries, c.keys) * row;
    const auto bytes = static_cast<std::size_t>(c.batch * sequence) * size_of(c.dtype);
    const auto buffer = std::make_shared<GuardedBuffer>(bytes);
    const auto slice = [&](const char* name, const std::vector<std::int64_t>& shape, std::int64_t first_head) {
      const Placed placed{{sequence, width, row, 1}, first_head * width, c.batch * sequence};
      return std::make_unique<StridedTensor>(name, c.dtype, shape, placed, buffer);
    };
    q_ = slice("q", q, 0);
    k_ = slice("k", k, c.heads);
    v_ = slice("v", v, c.heads + c.kv_heads);
  } else {
    q_ = std::make_unique<StridedTensor>("q", c.dtype, q, c.q, 0);
    k_ = std::make_unique<StridedTensor>("k", c.dtype, k, c.k, 1);
    v_ = std::make_unique<StridedTensor>("v", c.dtype, v, c.v, 2);
  }

  const Random of_q({c.seed, kQuery});
  const Random of_k({c.seed, kKey});
  switch (c.values) {
    case Values::unit:
      fill_normal(*q_, of_q, 1);
      fill_normal(*k_, of_k, 1);
      break;
    case Values::fifty:  // with the default scale scores have variance 50^2
      fill_normal(*q_, of_q, 10);
      fill_normal(*k_, of_k, 5);
      break;
    case Values::extreme:
      fill_rows(*q_, of_q, false);
      fill_rows(*k_, of_k, true);
      break;
    case Values::tiny:
      fill_normal(*q_, of_q, smallest_normal(c.dtype) / 2);
      fill_normal(*k_, of_k, smallest_normal(c.dtype) / 2);
      break;
  }
  fill_normal(*v_, Random({c.seed, kValue}), c.values == Values::tiny ? smallest_normal(c.dtype) * 1024 : 1);
}

void AttentionTensors::make_mask(const AttentionCase& c) {
  mask_ = std::make_unique<StridedTensor>("mask", DType::boolean, shape_of(c.mask.broadcast, c), c.mask.layout);
  Random random({c.seed, kMask});
  for (std::size_t e = 0; e < mask_->size(); ++e) {
    const double yes = random.pick({1.0, 2.0, 128.0, 255.0});  // any non-zero byte attends
    mask_->set(e, random.chance(c.mask.density) ? yes : 0.0);
  }
  if (!c.mask.empty_row || mask_->size() == 0) return;
  const auto row = static_cast<std::size_t>(mask_->shape().back());
  const auto start = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(mask_->size() / row))) * row;
  for (std::size_t e = start; e < start + row; ++e) mask_->set(e, 0);
}

void AttentionTensors::make_bias(const AttentionCase& c) {
  const BiasCase& bias = c.bias;
  bias_ = std::make_unique<StridedTensor>("bias", bias.dtype, shape_of(bias.broadcast, c), bias.layout);
  Random random({c.seed, kBias});
  for (std::size_t e = 0; e < bias_->size(); ++e) {
    double value = bias.whole_numbers ? static_cast<double>(random.between(-3, 3)) : random.normal();
    if (bias.infinite_entries && random.chance(0.2)) value = -kInfinity;
    if (bias.billion_entries && random.chance(0.2)) value = -1e9;
    bias_->set(e, value);
  }
  if (bias_->size() == 0) return;
  const auto row = static_cast<std::size_t>(bias_->shape().back());
  const std::size_t rows = bias_->size() / row;
  auto next = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(rows)));
  const auto fill_row = [&](double value) {
    for (std::size_t e = next * row; e < (next + 1) * row; ++e) bias_->set(e, value);
    next = (next + 1) % rows;
  };
  const double f32_largest = static_cast<double>(std::numeric_limits<float>::max());
  if (bias.lowest_row) fill_row(-std::min(largest(bias.dtype), f32_largest));
  if (bias.billion_row) fill_row(-1e9);
  if (bias.infinite_row) fill_row(-kInfinity);
}

void AttentionTensors::put(const AttentionCase& c) {
  if (c.placements.empty()) return;
  const PlacementFinder finder(dense(), c.seed);
  std::uint64_t number = 0;
  for (const Placement& placement : c.placements) {
    const std::optional<std::size_t> where = finder.find(placement.place, number++);
    if (!where) continue;
    switch (placement.place) {
      case Place::query: q_->set(*where, placement.value); break;
      case Place::masked_key:
      case Place::attended_key: k_->set(*where, placement.value); break;
      case Place::masked_value:
      case Place::attended_value: v_->set(*where, placement.value); break;
      case Place::masked_bias:
      case Place::attended_bias:
        if (bias_ != nullptr) {
          bias_->set(broadcast_indices(bias_->shape(), {c.batch, c.heads, c.queries, c.keys})[*where], placement.value);
        }
        break;
    }
  }
}

AttentionArgs AttentionTensors::args() const {
  AttentionArgs args;
  args.q = view_of(q_);
  args.k = view_of(k_);
  args.v = view_of(v_);
  args.out = out_->view();
  args.kv_lengths = view_of(kv_lengths_);
  args.align = case_.align;
  args.offsets = view_of(offsets_);
  args.causal = case_.causal;
  args.window = case_.window;
  args.mask = view_of(mask_);
  args.scale = case_.scale;
  args.softcap = case_.softcap;
  args.bias = view_of(bias_);
  args.alibi_slopes = view_of(alibi_slopes_);
  args.sinks = view_of(sinks_);
  if (lse_) args.lse = lse_->view();
  if (weights_) args.weights = weights_->view();
  return args;
}

DenseAttention AttentionTensors::dense() const { return read_args(args()); }

std::vector<StridedTensor*> AttentionTensors::outputs() const {
  std::vector<StridedTensor*> outputs{out_.get()};
  if (lse_) outputs.push_back(lse_.get());
  if (weights_) outputs.push_back(weights_.get());
  return outputs;
}

std::vector<const StridedTensor*> AttentionTensors::inputs() const {
  std::vector<const StridedTensor*> inputs;
  for (const Tensor* tensor : {&q_, &k_, &v_, &kv_lengths_, &offsets_, &mask_, &bias_, &alibi_slopes_, &sinks_}) {
    if (*tensor) inputs.push_back(tensor->get());
  }
  return inputs;
}

void AttentionTensors::fill_outputs(std::byte value) const {
  for (StridedTensor* tensor : outputs()) tensor->buffer().fill(value);
}

std::string AttentionTensors::damage(std::byte fill, bool extras_asked) const {
  for (const StridedTensor* tensor : outputs()) {
    if (!tensor->gaps_hold(fill)) return tensor->name() + " was written outside its elements";
    const GuardedBuffer& buffer = tensor->buffer();
    const bool asked = extras_asked || tensor == out_.get();
    if (!asked && std::any_of(buffer.data(), buffer.data() + buffer.size(), [&](std::byte b) { return b != fill; })) {
      return tensor->name() + " was written, but not asked for";
    }
  }
  std::size_t n = 0;
  for (const StridedTensor* tensor : inputs()) {
    const std::vector<std::byte>& before = snapshots_[n++];
    const GuardedBuffer& buffer = tensor->buffer();
    if (!before.empty() && std::memcmp(before.data(), buffer.data(), before.size()) != 0) {
      return tensor->name() + ", an input, was changed";
    }
    if (!buffer.guards_intact()) return tensor->name() + ", an input, was written outside its memory";
  }
  return "";
}

}  // namespace sorot::support
