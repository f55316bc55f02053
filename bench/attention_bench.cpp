#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>

#include "bench/bench.h"

namespace sorot::bench {
namespace {

/// A line of cases/attention.json.
struct Case {
  std::string name;
  DType dtype = DType::f32;
  std::int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, dim = 0;
  bool causal = false;
  Align align = Align::top_left;
};

Align align_of(const std::string& name) {
  if (name == "top_left") return Align::top_left;
  if (name == "bottom_right") return Align::bottom_right;
  throw std::invalid_argument("align is '" + name + "', expected top_left or bottom_right");
}

Case read_case(const nlohmann::json& line) {
  Case c;
  c.name = line.at("name");
  c.dtype = dtype_of(line.at("dtype"));
  c.batch = line.at("B");
  c.heads = line.at("H");
  c.kv_heads = line.at("Hkv");
  c.queries = line.at("Sq");
  c.keys = line.at("Skv");
  c.dim = line.at("D");
  c.causal = line.value("causal", false);
  c.align = align_of(line.value("align", "top_left"));
  if (line.at("reason").empty()) throw std::invalid_argument("case " + c.name + " has no reason");
  return c;
}

/// Pairs of query and key that are attended.
double attended_pairs(const Case& c) {
  const std::int64_t first = c.align == Align::bottom_right ? c.keys - c.queries : 0;
  std::int64_t pairs = 0;
  for (std::int64_t i = 0; i < c.queries; ++i) {
    pairs += c.causal ? std::clamp<std::int64_t>(first + i + 1, 0, c.keys) : c.keys;
  }
  return static_cast<double>(pairs * c.batch * c.heads);
}

/// The tensors of a case, with the args that name them.
class Tensors {
 public:
  Tensors(const Device& device, const Case& c) : device_(device), q_shape_{c.batch, c.heads, c.queries, c.dim} {
    std::mt19937 random(1);
    const std::array<std::int64_t, 4> kv_shape{c.batch, c.kv_heads, c.keys, c.dim};
    args.q = add(c.dtype, q_shape_, random);
    args.k = add(c.dtype, kv_shape, random);
    args.v = add(c.dtype, kv_shape, random);
    args.out = add(c.dtype, q_shape_, random);
    args.causal = c.causal;
    args.align = c.align;
  }

  AttentionArgs args;
  double bytes = 0;  ///< of all tensors together

 private:
  TensorView add(DType dtype, const std::array<std::int64_t, 4>& shape, std::mt19937& random) {
    const auto elements = static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]);
    bytes += static_cast<double>(elements * size_of(dtype));
    buffers_.push_back(random_tensor(device_, dtype, elements, random));
    return view(static_cast<void*>(buffers_.back().data()), dtype, {shape[0], shape[1], shape[2], shape[3]});
  }

  const Device& device_;
  std::array<std::int64_t, 4> q_shape_;
  std::vector<DeviceMemory> buffers_;
};

/// Plans once, then times calls. False if the device refuses the case.
bool time_plan_of(benchmark::State& state, const Device& device, const Tensors& tensors) {
  AttentionPlan plan;
  Status status = attention_plan(device.context(), tensors.args, plan);
  const DeviceMemory workspace(device, plan.workspace_bytes);
  if (status.ok()) {
    time_calls(state, device, [&] { status = attention(device.context(), plan, tensors.args, workspace.workspace()); });
    state.SetLabel(plan.kernel);
  }
  if (!status.ok()) fail(state, status);
  return status.ok();
}

void time_case(benchmark::State& state, const std::string& name, const Case& c) {
  const Device device(name);
  const Tensors tensors(device, c);
  if (!time_plan_of(state, device, tensors)) return;
  using benchmark::Counter;
  const double flops = attended_pairs(c) * 2 * static_cast<double>(c.dim + c.dim);
  state.counters["FLOP"] = Counter(flops, Counter::kIsIterationInvariantRate);  // printed as 1.23G/s
  state.counters["bytes"] = Counter(tensors.bytes, Counter::kIsIterationInvariantRate);
}

/// One pair and one element: what is left is checking the args, finding the kernel and calling it.
const Case kOnePair{"one_pair", DType::f32, 1, 1, 1, 1, 1, 1, false, Align::top_left};

/// What the calling thread waits for, on a GPU until its stream has the work.
void time_call(benchmark::State& state, const std::string& name) {
  const Device device(name);
  const Tensors tensors(device, kOnePair);
  AttentionPlan plan;
  Status status = attention_plan(device.context(), tensors.args, plan);
  const DeviceMemory workspace(device, plan.workspace_bytes);
  for (auto _ : state) {
    if (status.ok()) status = attention(device.context(), plan, tensors.args, workspace.workspace());
    benchmark::ClobberMemory();
  }
  if (!status.ok()) fail(state, status);
  device.wait();
}

void time_plan(benchmark::State& state, const std::string& name) {
  const Device device(name);
  const Tensors tensors(device, kOnePair);
  AttentionPlan plan;
  for (auto _ : state) {
    if (auto s = attention_plan(device.context(), tensors.args, plan); !s.ok()) {
      fail(state, s);
      break;
    }
    benchmark::DoNotOptimize(plan);
  }
}

}  // namespace

void register_attention(const nlohmann::json& cases) {
  for (const std::string& device : timed_devices()) {
    for (const nlohmann::json& line : cases) {
      const Case c = read_case(line);
      const std::string title = "attention/" + c.name + "/" + name(c.dtype) + "/" + device;
      benchmark::RegisterBenchmark(title.c_str(), time_case, device, c)->Unit(benchmark::kMicrosecond)->UseManualTime();
    }
  }
}

void register_attention_overhead() {
  for (const std::string& device : timed_devices()) {
    benchmark::RegisterBenchmark(("attention_overhead/plan/" + device).c_str(), time_plan, device)->UseRealTime();
    benchmark::RegisterBenchmark(("attention_overhead/call/" + device).c_str(), time_call, device)->UseRealTime();
  }
}

}  // namespace sorot::bench
