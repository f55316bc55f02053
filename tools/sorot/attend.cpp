#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/support/device.h"
#include "tests/support/device_args.h"
#include "tools/sorot/attend_inputs.h"
#include "tools/sorot/command.h"
#include "tools/sorot/outputs.h"

/// sorot attend: attention over .npy files.
///
///   options -> outputs claimed -> inputs read and rounded -> plan -> run -> outputs written, renamed -> report ->
///   final
namespace sorot::tools {
namespace {

void declare(CLI::App& app, AttendOptions& o) {
  const auto file = [&](const char* name, std::string& value, const char* text) {
    return app.add_option(name, value, text)->type_name("FILE");
  };
  const auto value = [&](const char* name, std::string& target, const char* type, const char* text) {
    return app.add_option(name, target, text)->type_name(type);
  };
  const char* tensors = "Tensors (.npy: <f2, <f4 or <f8; one rank: [S,D], [H,S,D] or [B,H,S,D])";
  file("--q", o.q, "queries [B,H,Sq,D]")->required()->group(tensors);
  file("--k", o.k, "keys [B,Hkv,Skv,D]; H is a multiple of Hkv")->required()->group(tensors);
  file("--v", o.v, "values [B,Hkv,Skv,Dv]")->required()->group(tensors);
  value("--dtype", o.dtype, "TYPE", "fp32, fp16, bf16 or fp64: q, k, v are rounded to it (default fp32)")
      ->group(tensors);

  const char* attended = "Which keys are attended";
  file("--mask", o.mask, "|b1, non-zero = attend; broadcasts to [B,H,Sq,Skv]")->group(attended);
  value("--kv-lengths", o.kv_lengths, "N,..|FILE", "keys of each sequence, 0..Skv; <i4 or <i8 [B] (default Skv)")
      ->group(attended);
  app.add_flag("--causal", o.causal, "only keys up to the query's own position")->group(attended);
  value("--window", o.window, "L,R", "only keys from L before to R behind the query's position; -1: no bound")
      ->group(attended);
  value("--align", o.align, "WHERE", "position of query 0: top-left 0, bottom-right length - Sq (default top-left)")
      ->group(attended);
  value("--align-offsets", o.align_offsets, "N,..|FILE", "position of query 0 of each sequence; <i4 or <i8 [B]")
      ->group(attended);

  const char* scores = "Scores";
  value("--scale", o.scale, "X", "factor on q.k (default 1/sqrt(D))")->group(scores);
  value("--softcap", o.softcap, "X", "bound on the scores, X tanh(s/X); 0: none (default 0)")->group(scores);
  file("--bias", o.bias, "float, added to the scores; broadcasts to [B,H,Sq,Skv]")->group(scores);
  file("--alibi", o.alibi, "float [H], times the distance is subtracted")->group(scores);
  file("--sinks", o.sinks, "float [H], a logit that joins the denominator")->group(scores);

  const char* outputs = "Outputs (.npy: <f4, or <f8 with fp64; rank of q)";
  file("--out", o.out, "result [B,H,Sq,Dv]")->group(outputs);
  file("--weights", o.weights, "softmax weights [B,H,Sq,Skv]")->group(outputs);
  file("--lse", o.lse, "ln of the denominator [B,H,Sq]")->group(outputs);
  app.add_flag("--explain", o.explain, "print which kernel ran and why")->group(outputs);
  app.add_flag("--json", o.json, "print one JSON object about the run (times in milliseconds)")->group(outputs);

  app.footer(
      "Options are written --x V or --x=V; V may begin with a minus. Where a list is taken, digits, commas and signs\n"
      "are a list and anything else is a file. Output files are written all or none; standard error says in one line\n"
      "what ran, or what is wrong. Exit codes: 0 success, 2 bad input, 3 no device or something this device lacks.");

  const char* device = "Device";
  value("--device", o.device, "NAME", "auto, reference or cuda (default auto: a GPU if there is one)")->group(device);
  value("--kernel", o.kernel, "NAME", "this kernel (see sorot info) or none (default the fastest that can serve)")
      ->group(device);
  declare_emulation(app, o.emulation);
}

/// An output as the library writes it. Its shape is what the file will have; the view has the full rank.
struct Output {
  const char* option;
  std::string path;                 ///< empty: not asked for
  std::vector<std::int64_t> shape;  ///< of the file
  Buffer memory;
  TensorView view;

  Output(const char* name, std::string target, DType dtype, std::vector<std::int64_t> full, int rank)
      : option(name), path(std::move(target)), shape(full.end() - rank, full.end()) {
    std::uint64_t bytes = size_of(dtype);
    bool overflow = false;
    bool empty = false;
    for (const std::int64_t size : full) {
      overflow |= __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes);
      empty |= size == 0;
    }
    if (overflow && !empty) refuse("{} would have shape {}, more than 64 bits count", option, npy_shape(full));
    memory = Buffer(empty ? 0 : bytes);
    view = TensorView(memory.data(), dtype, full.data(), static_cast<std::int32_t>(full.size()));
  }
};

/// One run: the problem, its outputs, what the library decided and how long it took.
struct Run {
  AttentionArgs args;
  std::vector<Output> outputs;
  AttentionPlan plan;
  double milliseconds = 0;
};

std::vector<Output> make_outputs(const AttendOptions& options, const AttendInputs& inputs) {
  const AttentionArgs& args = inputs.args();
  const std::int64_t b = args.q.shape[0];
  const std::int64_t h = args.q.shape[1];
  const std::int64_t queries = args.q.shape[2];
  std::vector<Output> outputs;
  outputs.emplace_back("--out", options.out, inputs.dtype(), std::vector{b, h, queries, args.v.shape[3]},
                       inputs.rank());
  if (!options.weights.empty()) {
    outputs.emplace_back("--weights", options.weights, inputs.wide(), std::vector{b, h, queries, args.k.shape[2]},
                         inputs.rank());
  }
  if (!options.lse.empty()) {
    outputs.emplace_back("--lse", options.lse, inputs.wide(), std::vector{b, h, queries}, inputs.rank() - 1);
  }
  return outputs;
}

/// The call by itself, on a clock that begins once inputs are where the device wants them. Outputs are on the host
/// then.
void call(const support::Device& device, const AttendInputs& inputs, Run& run) {
  const std::size_t bytes = run.plan.workspace_bytes;
  const Buffer host(device.on_host() ? bytes : 0);
  const support::DeviceMemory there(device, device.on_host() ? 0 : bytes);
  const Workspace workspace = device.on_host() ? Workspace{host.data(), host.bytes()} : there.workspace();
  support::DeviceArgs args(device, run.args);
  device.wait();

  const auto start = std::chrono::steady_clock::now();
  const Status status = attention(device.context(), run.plan, args.args(), workspace);
  if (status.code() == StatusCode::kDeviceError) throw support::DeviceError(support::whole_message(status));
  inputs.require(status);
  device.wait();
  run.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (const std::string changed = args.copy_back(); !changed.empty()) throw support::DeviceError(changed);
}

Run compute(const support::Device& device, const AttendOptions& options, const AttendInputs& inputs) {
  Run run{inputs.args(), make_outputs(options, inputs), {}, 0};
  for (const Output& output : run.outputs) {
    const std::string_view option = output.option;
    (option == "--out" ? run.args.out : option == "--lse" ? run.args.lse : run.args.weights) = output.view;
  }
  const PlanHint hint{options.kernel.empty() ? nullptr : options.kernel.c_str()};
  inputs.require(attention_plan(device.context(), run.args, run.plan, hint));
  call(device, inputs, run);
  return run;
}

/// Writes what was asked for, under temporary names.
void stage(Outputs& files, Run& run, DType wide) {
  std::vector<std::string> headers;
  std::vector<Outputs::Content> contents;
  headers.reserve(run.outputs.size());
  for (Output& output : run.outputs) {
    if (output.path.empty()) continue;
    if (output.view.dtype != wide) output.memory = convert(output.memory, output.view.dtype, wide);
    headers.push_back(format_npy_header(wide, output.shape));
    contents.push_back({output.option, headers.back(), {output.memory.data(), output.memory.bytes()}});
  }
  files.stage(contents);
}

std::string json_report(const AttendOptions& options, const AttendInputs& inputs, const Run& run) {
  const auto shape = [&](const ConstTensorView& view) {
    return std::vector<std::int64_t>(view.shape + kMaxRank - inputs.rank(), view.shape + kMaxRank);
  };
  nlohmann::ordered_json report;
  report["device"] = run.plan.device;
  report["kernel"] = run.plan.kernel;
  report["variant"] = run.plan.variant;
  report["dtype"] = options.dtype;
  report["shapes"]["q"] = shape(run.args.q);
  report["shapes"]["k"] = shape(run.args.k);
  report["shapes"]["v"] = shape(run.args.v);
  report["outputs"] = nlohmann::ordered_json::object();
  for (const Output& output : run.outputs) {
    const std::string name = output.option + 2;  // without the dashes
    report["shapes"][name] = output.shape;
    if (!output.path.empty()) report["outputs"][name] = output.path;
  }
  report["milliseconds"] = run.milliseconds;
  report["workspace_bytes"] = run.plan.workspace_bytes;
  report["explanation"] = explain(run.plan).c_str();
  // A file name need not be UTF-8; JSON must be.
  return report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

ExitCode run_attend(const Arguments& arguments) {
  AttendOptions options;
  CLI::App app("Attention over .npy files: out = softmax(scale q.k + bias) v, over the attended keys.", "sorot attend");
  declare(app, options);
  if (!parse(app, arguments)) return ExitCode::kSuccess;

  const std::string name = choose_device(options.device);
  Emulation(options.emulation, name).apply();
  const support::Device device = open_device(name);
  Outputs files;
  if (!options.out.empty()) files.claim("--out", options.out);
  if (!options.weights.empty()) files.claim("--weights", options.weights);
  if (!options.lse.empty()) files.claim("--lse", options.lse);

  const AttendInputs inputs(options);
  Run run = compute(device, options, inputs);
  stage(files, run, inputs.wide());
  std::string report;
  if (options.json) {
    report = json_report(options, inputs, run);
  } else if (options.explain) {
    report = fmt::format("{}\n", explain(run.plan).c_str());
  }
  files.publish();
  print(report);
  files.commit();
  const std::string ran = fmt::format("sorot: attention on {} by {}<{}> in {:.3f} ms\n", run.plan.device,
                                      run.plan.kernel, run.plan.variant, run.milliseconds);
  std::fputs(ran.c_str(), stderr);
  return ExitCode::kSuccess;
}

}  // namespace sorot::tools
