#include "tests/support/run_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sorot/version.h"
#include "tests/support/device_args.h"
#include "tests/support/features.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/invalid_args.h"
#include "tests/support/read_args.h"
#include "tests/support/schedules.h"

namespace sorot::support {
namespace {

/// A second background for outputs and workspace: what a kernel forgets to write differs between runs.
constexpr std::byte kOtherFill{0x5A};

using Bytes = std::vector<std::byte>;

Bytes bytes_of(const StridedTensor& tensor) {
  Bytes bytes;
  const std::size_t width = size_of(tensor.view().dtype);
  for (std::size_t e = 0; e < tensor.size(); ++e) {
    const std::byte* element = tensor.address(e);
    bytes.insert(bytes.end(), element, element + width);
  }
  return bytes;
}

std::vector<Bytes> outputs_of(const AttentionTensors& tensors) {
  std::vector<Bytes> bytes;
  for (const StridedTensor* output : tensors.outputs()) bytes.push_back(bytes_of(*output));
  return bytes;
}

/// Calls on the tensors of a case.
class Calls {
 public:
  Calls(const Device& device, const AttentionTensors& tensors, const Sabotage& sabotage)
      : device_(device), tensors_(tensors), sabotage_(sabotage) {}

  /// One on freshly filled outputs and workspace; what it damaged, or the status's message.
  std::string call(const AttentionPlan& plan, const AttentionArgs& args, std::byte fill) {
    last_ = {plan, args, fill, {}};
    if constexpr (kEmulated) last_.settings = emulator::settings();
    tensors_.fill_outputs(fill);
    DeviceArgs there(device_, args);
    DeviceMemory workspace(device_, plan.workspace_bytes);
    workspace.fill(fill);
    const Status status = run(plan, there.args(), workspace.workspace());
    if (!status.ok()) return fmt::format("attention: {}: {}", name(status.code()), whole_message(status));
    if (std::string changed = there.copy_back(); !changed.empty()) return changed;
    if (!workspace.guards_intact()) return "the workspace was overrun";
    return tensors_.damage(fill, args.lse.dtype != DType::none || args.weights.dtype != DType::none);
  }

  /// Another one under each of the device's schedules but the one that is set, which the first run had; where there is
  /// no other, just another call. Says what has other bits than then, or what else is wrong.
  std::string call_again(const AttentionPlan& plan, const AttentionArgs& args, const std::vector<Bytes>& first) {
    const std::vector<Schedule> list = schedules(device_, args);
    for (std::size_t s = list.size() > 1 ? 1 : 0; s < list.size(); ++s) {
      const std::byte fill = s % 2 == 0 ? kNaNFill : kOtherFill;
      const std::string when = list[s].name.empty() ? "a second run" : list[s].name;
      const std::string problem = under(list[s], [&] { return call(plan, args, fill); });
      if (!problem.empty()) return fmt::format("in {}: {}", when, problem);
      const std::vector<Bytes> again = outputs_of(tensors_);
      for (std::size_t n = 0; n < first.size(); ++n) {
        if (again[n] != first[n]) return fmt::format("{} has other bits in {}", tensors_.outputs()[n]->name(), when);
      }
    }
    return "";
  }

  /// What the emulator reports of the last call, done once more, when it watches for races.
  std::string races() const {
    tensors_.fill_outputs(last_.fill);
    const DeviceArgs there(device_, last_.args);
    DeviceMemory workspace(device_, last_.plan.workspace_bytes);
    workspace.fill(last_.fill);
    return report_of_races(device_, last_.settings,
                           [&] { return run(last_.plan, there.args(), workspace.workspace()); });
  }

 private:
  Status run(const AttentionPlan& plan, const AttentionArgs& there, Workspace workspace) const {
    const Status status = attention(device_.context(), plan, there, workspace);
    return status.ok() && sabotage_.work ? sabotage_.work(device_, there) : status;
  }

  struct Call {
    AttentionPlan plan;
    AttentionArgs args;
    std::byte fill{};
    emulator::Settings settings;
  };
  const Device& device_;
  const AttentionTensors& tensors_;
  const Sabotage& sabotage_;
  Call last_;
};

/// The plan, or in `result` why there is none.
bool make_plan(const Device& device, const AttentionArgs& args, const std::string& kernel, AttentionPlan& plan,
               CaseResult& result) {
  const Status status =
      attention_plan(device.context(), args, plan, PlanHint{kernel.empty() ? nullptr : kernel.c_str()});
  if (status.ok()) return true;
  result.served = status.code() != StatusCode::kUnsupported;
  result.problem = fmt::format("attention_plan: {}: {}", name(status.code()), status.message());
  return false;
}

/// All calls of a case; in `result` what is wrong with one of them, or differs between them.
void call_in_every_way(Calls& calls, const Device& device, const AttentionPlan& plan, const AttentionArgs& args,
                       const AttentionTensors& tensors, CaseResult& result) {
  result.problem = calls.call(plan, args, kOtherFill);
  if (!result.problem.empty()) return;
  const std::vector<Bytes> first = outputs_of(tensors);

  if (args.lse.dtype != DType::none || args.weights.dtype != DType::none) {
    AttentionArgs out_only = args;
    out_only.lse = out_only.weights = {};
    AttentionPlan out_plan;
    if (!make_plan(device, out_only, plan.kernel, out_plan, result)) return;
    result.problem = calls.call(out_plan, out_only, kNaNFill);
    if (!result.problem.empty()) return;
    if (bytes_of(tensors.out()) != first[0]) result.problem = "out has other bits when lse or weights are asked for";
    if (!result.problem.empty()) return;
  }
  result.problem = calls.call_again(plan, args, first);
}

void judge(const PreparedCase& prepared, CaseResult& result) {
  const Verdict verdict = judge_outputs(prepared.tensors.args(), prepared.problem, prepared.oracle, prepared.tolerance);
  result.judged = true;
  result.error = verdict.error;
  result.tolerance = verdict.tolerance;
  if (!verdict.ok) result.problem = verdict.what;
}

}  // namespace

std::vector<std::string> kernel_names(const std::string& device, const std::string& op) {
  std::vector<std::string> names;
  for (std::size_t d = 0; d < build_info().device_count; ++d) {
    const DeviceInfo& info = *build_info().devices[d];
    for (std::size_t k = 0; device == info.name && k < info.kernel_count; ++k) {
      const bool known = std::find(names.begin(), names.end(), info.kernels[k].kernel) != names.end();
      if (op == info.kernels[k].op && !known) names.emplace_back(info.kernels[k].kernel);
    }
  }
  return names;
}

PreparedCase::PreparedCase(const AttentionCase& c)
    : description(c),
      tensors(c),
      problem(tensors.dense()),
      oracle(attention_oracle(problem)),
      tolerance(attention_tolerance(problem, oracle, c.weights)),
      features(features_of(c, tensors, problem, oracle)) {}

CaseResult run_case(const Device& device, const PreparedCase& prepared, const std::string& kernel,
                    const Sabotage& sabotage) {
  CaseResult result;
  const AttentionTensors& tensors = prepared.tensors;
  AttentionArgs args = tensors.args();
  if (sabotage.args) sabotage.args(args);
  AttentionPlan plan;
  if (!make_plan(device, args, kernel, plan, result)) return result;
  result.kernel = plan.kernel;
  result.variant = plan.variant;

  Calls calls(device, tensors, sabotage);
  call_in_every_way(calls, device, plan, args, tensors, result);
  if (result.problem.empty()) {
    if (sabotage.results) sabotage.results(tensors);
    judge(prepared, result);
  }
  if (result.problem.empty() || !kEmulated || device.on_host()) return result;
  const std::string races = calls.races();
  if (result.problem.find(races) == std::string::npos) result.problem += "; watched for races: " + races;
  return result;
}

std::string run_invalid(const Device& device, const AttentionCase& c, std::size_t mistake) {
  const InvalidArgs& invalid = invalid_args()[mistake];
  const AttentionTensors tensors(c);
  AttentionArgs args = tensors.args();
  if (!invalid.apply(args)) return "";
  tensors.fill_outputs(kOtherFill);
  AttentionPlan plan;
  GuardedBuffer workspace(std::size_t{1} << 16);
  // Refused before anybody looks at data, so host memory does for every device.
  for (const Status& status : {attention_plan(device.context(), args, plan),
                               attention(device.context(), args, {workspace.data(), workspace.size()})}) {
    if (status.code() != StatusCode::kInvalidArgument) {
      return fmt::format("{}: got {} ('{}'), expected kInvalidArgument", invalid.what, name(status.code()),
                         status.message());
    }
  }
  for (const StridedTensor* output : tensors.outputs()) {
    const GuardedBuffer& buffer = output->buffer();
    const bool untouched =
        std::all_of(buffer.data(), buffer.data() + buffer.size(), [](std::byte b) { return b == kOtherFill; });
    if (!untouched || !buffer.guards_intact()) return fmt::format("{}: {} was written", invalid.what, output->name());
  }
  return "";
}

}  // namespace sorot::support
