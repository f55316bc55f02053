#include "tools/sorot/attend_inputs.h"

#include <cstring>
#include <limits>
#include <type_traits>

#include "tools/sorot/command.h"

namespace sorot::tools {
namespace {

constexpr std::int64_t kLowest32 = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kHighest32 = std::numeric_limits<std::int32_t>::max();

template <class Use>
void with_float_type(DType dtype, Use use) {
  switch (dtype) {
    case DType::f16: return use(std::type_identity<float16>());
    case DType::bf16: return use(std::type_identity<bfloat16>());
    case DType::f32: return use(std::type_identity<float>());
    case DType::f64: return use(std::type_identity<double>());
    default: throw std::logic_error("a conversion of something that is no float");
  }
}

DType parse_dtype(const std::string& text) {
  if (text == "fp32") return DType::f32;
  if (text == "fp16") return DType::f16;
  if (text == "bf16") return DType::bf16;
  if (text == "fp64") return DType::f64;
  refuse("--dtype is '{}', expected fp32, fp16, bf16 or fp64", text);
}

Window parse_window(const std::string& text) {
  const std::vector<std::int64_t> sides = parse_integers("--window", text);
  if (sides.size() != 2) refuse("--window is '{}', expected two whole numbers: LEFT,RIGHT", text);
  for (const std::int64_t side : sides) {
    if (side < -1 || side > kHighest32) {
      refuse("--window has {}, expected -1 (unbounded) or 0..{}", side, kHighest32);
    }
  }
  return {static_cast<std::int32_t>(sides[0]), static_cast<std::int32_t>(sides[1])};
}

Align parse_align(const AttendOptions& options) {
  if (!options.align_offsets.empty()) {
    if (options.align.empty()) return Align::offsets;
    refuse("--align {} contradicts --align-offsets, expected one of the two", options.align);
  }
  if (options.align.empty() || options.align == "top-left") return Align::top_left;
  if (options.align == "bottom-right") return Align::bottom_right;
  refuse("--align is '{}', expected top-left or bottom-right", options.align);
}

/// [S, D] and [H, S, D] as [B, H, S, D].
ConstTensorView with_rank_4(const ConstTensorView& view) {
  ConstTensorView full = view;
  const int missing = kMaxRank - view.rank;
  full.rank = kMaxRank;
  for (int d = 0; d < kMaxRank; ++d) {
    full.shape[d] = d < missing ? 1 : view.shape[d - missing];
    full.strides[d] = d < missing ? 1 : view.strides[d - missing];
  }
  return full;
}

/// Whole numbers of a file, in the order they are stored.
std::vector<std::int64_t> widen(const NpyArray& array) {
  const bool wide = array.header.dtype == DType::i64;
  std::vector<std::int64_t> values(array.data.bytes() / (wide ? 8 : 4));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = wide ? reinterpret_cast<const std::int64_t*>(array.data.data())[i]
                     : reinterpret_cast<const std::int32_t*>(array.data.data())[i];
  }
  return values;
}

bool is_list(const std::string& text) { return text.find_first_not_of("0123456789,+-") == std::string::npos; }

}  // namespace

Buffer convert(const Buffer& from, DType from_type, DType to_type) {
  const std::size_t count = from.bytes() / size_of(from_type);
  Buffer to(count * size_of(to_type));
  with_float_type(from_type, [&]<class From>(std::type_identity<From>) {
    with_float_type(to_type, [&]<class To>(std::type_identity<To>) {
      const From* source = reinterpret_cast<const From*>(from.data());
      To* target = reinterpret_cast<To*>(to.data());
      // Every one of these types widens to double exactly, so the way back is the only rounding.
      for (std::size_t i = 0; i < count; ++i) target[i] = static_cast<To>(static_cast<double>(source[i]));
    });
  });
  return to;
}

AttendInputs::AttendInputs(const AttendOptions& options) {
  read_scalars(options);
  args_.q = read_head("q", "--q", options.q);
  args_.k = read_head("k", "--k", options.k);
  args_.v = read_head("v", "--v", options.v);
  if (!options.mask.empty()) args_.mask = read_mask(options.mask);
  if (!options.bias.empty()) args_.bias = read_floats("bias", "--bias", options.bias, wide());
  if (!options.alibi.empty()) args_.alibi_slopes = read_floats("alibi_slopes", "--alibi", options.alibi, DType::f32);
  if (!options.sinks.empty()) args_.sinks = read_floats("sinks", "--sinks", options.sinks, DType::f32);
  if (!options.kv_lengths.empty()) {
    args_.kv_lengths = read_integers("kv_lengths", "--kv-lengths", options.kv_lengths, 0, args_.k.shape[2]);
  }
  if (!options.align_offsets.empty()) {
    args_.offsets = read_integers("offsets", "--align-offsets", options.align_offsets, kLowest32, kHighest32);
  }
}

/// What needs no file, so that a slip in it is told before anything large is read.
void AttendInputs::read_scalars(const AttendOptions& options) {
  dtype_ = parse_dtype(options.dtype);
  args_.causal = options.causal;
  args_.align = parse_align(options);
  if (!options.window.empty()) args_.window = parse_window(options.window);
  if (!options.scale.empty()) args_.scale = parse_double("--scale", options.scale);
  if (!options.softcap.empty()) args_.softcap = parse_double("--softcap", options.softcap);
}

NpyArray AttendInputs::read(const char* field, const char* option, const std::string& path,
                            std::span<const DType> accepted) {
  sources_.push_back({field, fmt::format("{} {}", option, path)});
  return read_npy(sources_.back().name, path, accepted);
}

ConstTensorView AttendInputs::read_floats(const char* field, const char* option, const std::string& path, DType dtype) {
  static constexpr DType kFloats[] = {DType::f16, DType::f32, DType::f64};
  NpyArray array = read(field, option, path, kFloats);
  const DType type = array.header.dtype;
  memory_.push_back(type == dtype ? std::move(array.data) : convert(array.data, type, dtype));
  return npy_view(array.header, memory_.back().data(), dtype);
}

/// q, k or v.
ConstTensorView AttendInputs::read_head(const char* field, const char* option, const std::string& path) {
  const ConstTensorView view = read_floats(field, option, path, dtype_);
  const std::string& name = sources_.back().name;
  const std::string shape = npy_shape({view.shape, static_cast<std::size_t>(view.rank)});
  if (rank_ == 0) {
    if (view.rank < 2) refuse("{} has shape {}, expected [S,D], [H,S,D] or [B,H,S,D]", name, shape);
    rank_ = view.rank;
  }
  if (view.rank != rank_) {
    refuse("{} has shape {}, expected {} dimensions as in {}", name, shape, rank_, sources_.front().name);
  }
  return with_rank_4(view);
}

ConstTensorView AttendInputs::read_mask(const std::string& path) {
  static constexpr DType kBooleans[] = {DType::boolean};
  NpyArray array = read("mask", "--mask", path, kBooleans);
  memory_.push_back(std::move(array.data));
  return npy_view(array.header, memory_.back().data(), DType::boolean);
}

/// A list or a file, checked against a range where the library would clamp.
ConstTensorView AttendInputs::read_integers(const char* field, const char* option, const std::string& text,
                                            std::int64_t lowest, std::int64_t highest) {
  NpyHeader header;
  std::vector<std::int64_t> values;
  if (is_list(text)) {
    values = parse_integers(option, text);
    header.rank = 1;
    header.shape[0] = static_cast<std::int64_t>(values.size());
    sources_.push_back({field, fmt::format("{} {}", option, text)});
  } else {
    static constexpr DType kIntegers[] = {DType::i32, DType::i64};
    const NpyArray array = read(field, option, text, kIntegers);
    header = array.header;
    values = widen(array);
  }

  memory_.emplace_back(values.size() * sizeof(std::int32_t));
  auto* narrow = reinterpret_cast<std::int32_t*>(memory_.back().data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < lowest || values[i] > std::min(highest, kHighest32)) {
      refuse("{} has {} for sequence {}, expected {}..{}", sources_.back().name, values[i], i, lowest, highest);
    }
    narrow[i] = static_cast<std::int32_t>(values[i]);
  }
  return npy_view(header, narrow, DType::i32);
}

void AttendInputs::require(const Status& status) const {
  if (status.code() == StatusCode::kInvalidArgument) {
    const std::string message = status.message();
    const std::string field = message.substr(0, message.find(' '));
    for (const Source& source : sources_) {
      if (source.field == field) refuse("{} ({} is {})", message, field, source.name);
    }
  }
  tools::require(status);
}

}  // namespace sorot::tools
