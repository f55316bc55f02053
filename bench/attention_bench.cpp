#include <benchmark/benchmark.h>

#include "bench/attention_case.h"
#include "bench/attention_tensors.h"
#include "bench/bench.h"

namespace sorot::bench {
namespace {

/// Plans once, then times calls. False if the device refuses the case.
bool time_plan_of(benchmark::State& state, const Device& device, const AttentionTensors& tensors) {
  AttentionPlan plan;
  Status status = attention_plan(device.context(), tensors.args(), plan);
  const DeviceMemory workspace(device, plan.workspace_bytes);
  if (status.ok()) {
    time_calls(state, device,
               [&] { status = attention(device.context(), plan, tensors.args(), workspace.workspace()); });
    state.SetLabel(plan.kernel);
  }
  if (!status.ok()) fail(state, status);
  return status.ok();
}

void time_case(benchmark::State& state, const std::string& name, const AttentionCase& c) {
  const Device device(name);
  const AttentionTensors tensors(device, c);
  if (!time_plan_of(state, device, tensors)) return;
  using benchmark::Counter;
  state.counters["FLOP"] = Counter(attention_flops(c), Counter::kIsIterationInvariantRate);  // printed as 1.23G/s
  state.counters["bytes"] = Counter(attention_bytes(c), Counter::kIsIterationInvariantRate);
}

/// One pair and one element: what is left is checking the args, finding the kernel and calling it.
const AttentionCase kOnePair{"one_pair", DType::f32, 1, 1, 1, 1, 1, 1, false, Align::top_left, {}};

/// What the calling thread waits for, on a GPU until its stream has the work.
void time_call(benchmark::State& state, const std::string& name) {
  const Device device(name);
  const AttentionTensors tensors(device, kOnePair);
  AttentionPlan plan;
  Status status = attention_plan(device.context(), tensors.args(), plan);
  const DeviceMemory workspace(device, plan.workspace_bytes);
  for (auto _ : state) {
    if (status.ok()) status = attention(device.context(), plan, tensors.args(), workspace.workspace());
    benchmark::ClobberMemory();
  }
  if (!status.ok()) fail(state, status);
  device.wait();
}

void time_plan(benchmark::State& state, const std::string& name) {
  const Device device(name);
  const AttentionTensors tensors(device, kOnePair);
  AttentionPlan plan;
  for (auto _ : state) {
    if (auto s = attention_plan(device.context(), tensors.args(), plan); !s.ok()) {
      fail(state, s);
      break;
    }
    benchmark::DoNotOptimize(plan);
  }
}

}  // namespace

void register_attention(const nlohmann::json& lines) {
  const std::vector<AttentionCase> cases = read_attention_cases(lines);
  for (const std::string& device : timed_devices()) {
    for (const AttentionCase& c : cases) {
      if (!is_timed_on(c, device)) continue;
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
