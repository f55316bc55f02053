#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "tests/support/attention_case.h"
#include "tests/support/invalid_args.h"

/// Cases as JSON. Each struct lists its fields once, in `fields`; a reader and a writer walk that list.
namespace sorot::support {
namespace {

using Json = nlohmann::ordered_json;

template <class E>
using Names = std::vector<std::pair<E, std::string_view>>;

const Names<DType>& names(DType) {
  static const Names<DType> list{
      {DType::none, "none"}, {DType::f64, "f64"}, {DType::f32, "f32"}, {DType::f16, "f16"}, {DType::bf16, "bf16"}};
  return list;
}
const Names<Order>& names(Order) {
  static const Names<Order> list{{Order::natural, "natural"},
                                 {Order::heads_inner, "heads_inner"},
                                 {Order::transposed, "transposed"},
                                 {Order::packed, "packed"}};
  return list;
}
const Names<Twist>& names(Twist) {
  static const Names<Twist> list{{Twist::none, "none"},     {Twist::negative, "negative"},
                                 {Twist::zero, "zero"},     {Twist::unaligned, "unaligned"},
                                 {Twist::padded, "padded"}, {Twist::strided, "strided"}};
  return list;
}
const Names<Align>& names(Align) {
  static const Names<Align> list{
      {Align::top_left, "top_left"}, {Align::bottom_right, "bottom_right"}, {Align::offsets, "offsets"}};
  return list;
}
const Names<Values>& names(Values) {
  static const Names<Values> list{
      {Values::unit, "unit"}, {Values::fifty, "fifty"}, {Values::extreme, "extreme"}, {Values::tiny, "tiny"}};
  return list;
}
const Names<Place>& names(Place) {
  static const Names<Place> list{{Place::query, "query"},
                                 {Place::masked_key, "masked_key"},
                                 {Place::attended_key, "attended_key"},
                                 {Place::masked_value, "masked_value"},
                                 {Place::attended_value, "attended_value"},
                                 {Place::masked_bias, "masked_bias"},
                                 {Place::attended_bias, "attended_bias"}};
  return list;
}
const Names<EmptySize>& names(EmptySize) {
  static const Names<EmptySize> list{{EmptySize::none, "none"},       {EmptySize::batch, "batch"},
                                     {EmptySize::heads, "heads"},     {EmptySize::all_heads, "all_heads"},
                                     {EmptySize::queries, "queries"}, {EmptySize::keys, "keys"}};
  return list;
}

template <class Visitor>
void fields(Visitor& visit, Layout& layout) {
  visit("order", layout.order);
  visit("twist", layout.twist);
  visit("zero_dim", layout.zero_dim);
}
template <class Visitor>
void fields(Visitor& visit, Broadcast& broadcast) {
  visit("rank", broadcast.rank);
  visit("batch", broadcast.full[0]);
  visit("heads", broadcast.full[1]);
  visit("queries", broadcast.full[2]);
  visit("keys", broadcast.full[3]);
}
template <class Visitor>
void fields(Visitor& visit, MaskCase& mask) {
  visit("present", mask.present);
  visit("broadcast", mask.broadcast);
  visit("density", mask.density);
  visit("empty_row", mask.empty_row);
  visit("layout", mask.layout);
}
template <class Visitor>
void fields(Visitor& visit, BiasCase& bias) {
  visit("present", bias.present);
  visit("dtype", bias.dtype);
  visit("broadcast", bias.broadcast);
  visit("whole_numbers", bias.whole_numbers);
  visit("infinite_entries", bias.infinite_entries);
  visit("infinite_row", bias.infinite_row);
  visit("lowest_row", bias.lowest_row);
  visit("billion_entries", bias.billion_entries);
  visit("billion_row", bias.billion_row);
  visit("layout", bias.layout);
}
template <class Visitor>
void fields(Visitor& visit, VectorCase& vector) {
  visit("values", vector.values);
  visit("layout", vector.layout);
}
template <class Visitor>
void fields(Visitor& visit, Placement& placement) {
  visit("place", placement.place);
  visit("value", placement.value);
}
template <class Visitor>
void fields(Visitor& visit, AttentionCase& c) {
  visit("seed", c.seed);
  visit("dtype", c.dtype);
  visit("B", c.batch);
  visit("H", c.heads);
  visit("Hkv", c.kv_heads);
  visit("Sq", c.queries);
  visit("Skv", c.keys);
  visit("D", c.head_dim);
  visit("Dv", c.value_dim);
  visit("values", c.values);
  visit("q", c.q);
  visit("k", c.k);
  visit("v", c.v);
  visit("out", c.out);
  visit("align", c.align);
  visit("causal", c.causal);
  visit("window_left", c.window.left);
  visit("window_right", c.window.right);
  visit("kv_lengths", c.kv_lengths);
  visit("offsets", c.offsets);
  visit("mask", c.mask);
  visit("scale", c.scale);
  visit("softcap", c.softcap);
  visit("bias", c.bias);
  visit("alibi_slopes", c.alibi_slopes);
  visit("sinks", c.sinks);
  visit("placements", c.placements);
  visit("lse", c.lse);
  visit("lse_layout", c.lse_layout);
  visit("weights", c.weights);
  visit("weights_layout", c.weights_layout);
  visit("simple", c.simple);
  visit("aligned", c.aligned);
  visit("empty", c.empty);
  visit("invalid", c.invalid);
}

template <class T>
concept Struct = std::is_class_v<T>;

class Writer {
 public:
  template <class T>
  static Json write(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      for (const auto& [e, name] : names(value)) {
        if (e == value) return std::string(name);
      }
      return "unknown";
    } else if constexpr (std::is_same_v<T, double>) {  // JSON has no number for these
      if (std::isnan(value)) return "nan";
      if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
      return value;
    } else if constexpr (Struct<T>) {
      Writer writer;
      T copy = value;
      T defaults{};
      fields(writer, copy);
      Writer plain;
      fields(plain, defaults);
      for (const auto& [key, default_value] : plain.json_.items()) {
        if (writer.json_[key] == default_value) writer.json_.erase(key);
      }
      return writer.json_;
    } else {
      return value;
    }
  }

  template <class T>
  void operator()(const char* name, T& value) {
    json_[name] = write(value);
  }
  template <class T>
  void operator()(const char* name, std::optional<T>& value) {
    if (value) json_[name] = write(*value);
  }
  template <class T>
  void operator()(const char* name, std::vector<T>& values) {
    Json list = Json::array();
    for (const T& value : values) list.push_back(write(value));
    json_[name] = std::move(list);
  }

 private:
  Json json_ = Json::object();
};

class Reader {
 public:
  Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) wrong("expected an object");
  }

  template <class T>
  static void read(const Json& json, const std::string& where, T& value) {
    if constexpr (std::is_enum_v<T>) {
      std::string expected;
      for (const auto& [e, name] : names(value)) {
        if (json == name) {
          value = e;
          return;
        }
        expected += fmt::format("{}{}", expected.empty() ? "" : ", ", name);
      }
      throw std::runtime_error(fmt::format("{} is {}, expected one of {}", where, json.dump(), expected));
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) throw std::runtime_error(fmt::format("{} is {}, expected a bool", where, json.dump()));
      value = json.get<bool>();
    } else if constexpr (std::is_same_v<T, double>) {
      read_number(json, where, value);
    } else if constexpr (Struct<T>) {
      Reader reader(json, where);
      fields(reader, value);
      reader.no_more();
    } else {
      const bool fits = json.is_number_unsigned()
                            ? json.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<T>::max())
                            : json.is_number_integer() && std::is_signed_v<T> &&
                                  json.get<std::int64_t>() >= static_cast<std::int64_t>(std::numeric_limits<T>::min());
      if (!fits) throw std::runtime_error(fmt::format("{} is {}, expected a whole number", where, json.dump()));
      value = json.get<T>();
    }
  }

  template <class T>
  void operator()(const char* name, T& value) {
    if (const Json* json = find(name)) read(*json, path(name), value);
  }
  template <class T>
  void operator()(const char* name, std::optional<T>& value) {
    if (const Json* json = find(name)) read(*json, path(name), value.emplace());
  }
  template <class T>
  void operator()(const char* name, std::vector<T>& values) {
    const Json* json = find(name);
    if (json == nullptr) return;
    if (!json->is_array()) throw std::runtime_error(fmt::format("{} is {}, expected a list", path(name), json->dump()));
    values.clear();
    for (const Json& element : *json)
      read(element, fmt::format("{}[{}]", path(name), values.size()), values.emplace_back());
  }

 private:
  static void read_number(const Json& json, const std::string& where, double& value) {
    if (json == "nan") {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (json == "inf" || json == "-inf") {
      value = json == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
    } else if (json.is_number()) {
      value = json.get<double>();
    } else {
      throw std::runtime_error(
          fmt::format("{} is {}, expected a number, \"nan\", \"inf\" or \"-inf\"", where, json.dump()));
    }
  }

  const Json* find(const char* name) {
    known_.insert(name);
    const auto it = json_.find(name);
    return it == json_.end() ? nullptr : &*it;
  }
  std::string path(const char* name) const { return where_ + "." + name; }

  void no_more() const {
    for (const auto& [key, value] : json_.items()) {
      if (!known_.contains(key)) wrong(fmt::format("has the unknown field '{}'", key));
    }
  }

  [[noreturn]] void wrong(const std::string& what) const { throw std::runtime_error(where_ + ": " + what); }

  const Json& json_;
  std::string where_;
  std::set<std::string> known_;
};

/// What a case file may not ask for: the materialised tensors would not fit the machine, or make no sense.
class Rules {
 public:
  explicit Rules(std::string where) : where_(std::move(where)) {}

  void check(const AttentionCase& c) const {
    check_sizes(c);
    for (const auto& [field, dtype] : {std::pair("dtype", c.dtype), std::pair("bias.dtype", c.bias.dtype)}) {
      if (dtype == DType::none) wrong("{} is none, expected f64, f32, f16 or bf16", field);
    }
    for (const auto& [field, broadcast] :
         {std::pair("mask.broadcast", c.mask.broadcast), std::pair("bias.broadcast", c.bias.broadcast)}) {
      if (broadcast.rank < 1 || broadcast.rank > 4) wrong("{}.rank is {}, expected 1..4", field, broadcast.rank);
    }
    check_layouts(c);
    if (const auto count = invalid_args().size(); c.invalid >= static_cast<std::int32_t>(count)) {
      wrong("invalid is {}, expected below {}", c.invalid, count);
    }
    check_vector("kv_lengths", c.kv_lengths, "B", c.batch);
    check_vector("offsets", c.offsets, "B", c.batch);
    check_vector("alibi_slopes", c.alibi_slopes, "H", c.heads);
    check_vector("sinks", c.sinks, "H", c.heads);
    const bool offsets = !c.offsets.values.empty();
    if ((c.align == Align::offsets) != offsets && c.batch > 0) {
      wrong("{}", offsets ? "offsets need align \"offsets\"" : "align is \"offsets\", but there are no offsets");
    }
  }

 private:
  template <class... Values>
  [[noreturn]] void wrong(fmt::format_string<Values...> format, Values&&... values) const {
    throw std::runtime_error(fmt::format("{}: {}", where_, fmt::format(format, std::forward<Values>(values)...)));
  }

  void check_sizes(const AttentionCase& c) const {
    constexpr std::int64_t kMost = 1 << 20;
    const std::pair<const char*, std::int64_t> sizes[] = {{"B", c.batch},     {"H", c.heads},  {"Hkv", c.kv_heads},
                                                          {"Sq", c.queries},  {"Skv", c.keys}, {"D", c.head_dim},
                                                          {"Dv", c.value_dim}};
    for (const auto& [field, size] : sizes) {
      const std::int64_t least = field[0] == 'D' ? 1 : 0;
      if (size < least || size > kMost) wrong("{} is {}, expected {}..{}", field, size, least, kMost);
    }
    if (c.heads > 0 && (c.kv_heads < 1 || c.heads % c.kv_heads != 0)) {
      wrong("H is {}, expected a multiple of Hkv, which is {}", c.heads, c.kv_heads);
    }
    const double pairs = static_cast<double>(c.batch * c.heads) * static_cast<double>(c.queries * c.keys);
    if (pairs > 1e9) wrong("B * H * Sq * Skv is {:.3g}, expected at most 1e9", pairs);
    const std::int64_t rows = std::max(c.heads * c.queries, c.kv_heads * c.keys);
    const double elements = static_cast<double>(c.batch) * static_cast<double>(rows) *
                            static_cast<double>(std::max(c.head_dim, c.value_dim));
    if (elements > 1e8) wrong("{:.3g} elements in a tensor, expected at most 1e8", elements);
  }

  void check_layouts(const AttentionCase& c) const {
    for (const auto& [field, layout] : {std::pair("out", c.out), std::pair("lse_layout", c.lse_layout),
                                        std::pair("weights_layout", c.weights_layout)}) {
      if (layout.twist == Twist::zero) wrong("{}.twist is zero, but an output cannot have a zero stride", field);
    }
    for (const auto& [field, layout] :
         {std::pair("q", c.q), std::pair("k", c.k), std::pair("v", c.v), std::pair("mask.layout", c.mask.layout),
          std::pair("bias.layout", c.bias.layout)}) {
      if (layout.zero_dim < 0) wrong("{}.zero_dim is {}, expected 0 or more", field, layout.zero_dim);
    }
  }

  void check_vector(const char* field, const VectorCase& vector, const char* size_name, std::int64_t size) const {
    const std::size_t count = vector.values.size();
    if (count == 0 || static_cast<std::int64_t>(count) == size) return;
    wrong("{} has {} values, expected {}, as {} says", field, count, size, size_name);
  }

  std::string where_;
};

}  // namespace

std::string to_json(const AttentionCase& c) { return Writer::write(c).dump(); }

std::vector<AttentionCase> cases_from_json(const std::string& text) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ...", of which people need the rest.
    const std::string_view what = error.what();
    throw std::runtime_error(fmt::format("no JSON: {}", what.substr(std::min(what.find("] ") + 2, what.size()))));
  }
  if (!json.is_array()) throw std::runtime_error("expected a list of cases: [{...}, ...]");
  std::vector<AttentionCase> cases;
  for (const Json& element : json) {
    const std::string where = fmt::format("case {}", cases.size());
    AttentionCase c;
    Reader::read(element, where, c);
    Rules(where).check(c);
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace sorot::support
