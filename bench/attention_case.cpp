#include "bench/attention_case.h"

#include <algorithm>
#include <stdexcept>

namespace sorot::bench {
namespace {

constexpr const char* kFields[] = {"name", "dtype", "B",      "H",     "Hkv",     "Sq",
                                   "Skv",  "D",     "causal", "align", "devices", "reason"};
constexpr const char* kDevices[] = {"reference", "cuda"};

/// "a, b, c"
template <std::size_t kCount>
std::string list(const char* const (&names)[kCount]) {
  std::string text;
  for (const char* name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

template <std::size_t kCount>
void require_known(const std::string& where, const std::string& name, const char* const (&known)[kCount]) {
  if (std::find(std::begin(known), std::end(known), name) != std::end(known)) return;
  throw std::invalid_argument(where + " '" + name + "', expected one of " + list(known));
}

DType dtype_of(const std::string& name) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    if (name == sorot::name(dtype)) return dtype;
  }
  throw std::invalid_argument("dtype is '" + name + "', expected f64, f32, f16 or bf16");
}

Align align_of(const std::string& name) {
  if (name == "top_left") return Align::top_left;
  if (name == "bottom_right") return Align::bottom_right;
  throw std::invalid_argument("align is '" + name + "', expected top_left or bottom_right");
}

std::int64_t size(const nlohmann::json& line, const std::string& name, const char* field) {
  const std::int64_t value = line.at(field);
  if (value >= 1) return value;
  throw std::invalid_argument("case " + name + ": " + field + " is " + std::to_string(value) + ", expected 1 or more");
}

}  // namespace

AttentionCase read_attention_case(const nlohmann::json& line) {
  AttentionCase c;
  c.name = line.at("name");
  for (const auto& [field, value] : line.items()) require_known("case " + c.name + ": unknown field", field, kFields);
  c.dtype = dtype_of(line.at("dtype"));
  c.batch = size(line, c.name, "B");
  c.heads = size(line, c.name, "H");
  c.kv_heads = size(line, c.name, "Hkv");
  if (c.heads % c.kv_heads != 0) {
    throw std::invalid_argument("case " + c.name + ": H is " + std::to_string(c.heads) +
                                ", expected a multiple of Hkv = " + std::to_string(c.kv_heads));
  }
  c.queries = size(line, c.name, "Sq");
  c.keys = size(line, c.name, "Skv");
  c.dim = size(line, c.name, "D");
  c.causal = line.value("causal", false);
  c.align = align_of(line.value("align", "top_left"));
  if (line.contains("devices")) {
    c.devices = line.at("devices").get<std::vector<std::string>>();
    if (c.devices.empty()) throw std::invalid_argument("case " + c.name + " has an empty list of devices");
  }
  for (const std::string& device : c.devices) require_known("case " + c.name + ": unknown device", device, kDevices);
  if (line.at("reason").get<std::string>().empty()) throw std::invalid_argument("case " + c.name + " has no reason");
  return c;
}

std::vector<AttentionCase> read_attention_cases(const nlohmann::json& lines) {
  std::vector<AttentionCase> cases;
  for (const nlohmann::json& line : lines) cases.push_back(read_attention_case(line));
  return cases;
}

bool is_timed_on(const AttentionCase& c, const std::string& device) {
  return c.devices.empty() || std::find(c.devices.begin(), c.devices.end(), device) != c.devices.end();
}

std::int64_t attended_keys(const AttentionCase& c, std::int64_t i) {
  const std::int64_t first = c.align == Align::bottom_right ? c.keys - c.queries : 0;
  return c.causal ? std::clamp<std::int64_t>(first + i + 1, 0, c.keys) : c.keys;
}

double attention_flops(const AttentionCase& c) {
  std::int64_t pairs = 0;
  for (std::int64_t i = 0; i < c.queries; ++i) pairs += attended_keys(c, i);
  return static_cast<double>(pairs * c.batch * c.heads) * 2 * static_cast<double>(c.dim + c.dim);
}

double attention_bytes(const AttentionCase& c) {
  const std::int64_t rows = 2 * c.heads * c.queries + 2 * c.kv_heads * c.keys;  // q and out; k and v
  return static_cast<double>(c.batch * rows * c.dim) * static_cast<double>(size_of(c.dtype));
}

AttentionArgs attention_args(const AttentionCase& c, void* q, void* k, void* v, void* out) {
  AttentionArgs args;
  args.q = view(q, c.dtype, {c.batch, c.heads, c.queries, c.dim});
  args.k = view(k, c.dtype, {c.batch, c.kv_heads, c.keys, c.dim});
  args.v = view(v, c.dtype, {c.batch, c.kv_heads, c.keys, c.dim});
  args.out = view(out, c.dtype, {c.batch, c.heads, c.queries, c.dim});
  args.causal = c.causal;
  args.align = c.align;
  return args;
}

}  // namespace sorot::bench
