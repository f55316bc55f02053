#include <nlohmann/json.hpp>

#include "tools/sorot/command.h"

/// sorot info: what this build is and on which devices it computes.
namespace sorot::tools {
namespace {

/// What stands for a device on this machine: its model, or why it cannot be used. Empty where there is one by nature.
struct Here {
  std::string model;
  std::string problem;

  explicit Here(const std::string& device) : problem(support::Device::probe(device).message()) {
    if (problem.empty() && device == "cuda") model = support::cuda_model();
  }
};

std::string json_report(const BuildInfo& build) {
  nlohmann::ordered_json report;
  report["version"] = build.version;
  report["compilers"]["host"] = build.compiler;
  report["compilers"]["cuda"] = nullptr;
  if (build.cuda_compiler != nullptr) report["compilers"]["cuda"] = build.cuda_compiler;
  report["auto"]["device"] = choose_device("auto");
  report["auto"]["reason"] = auto_device_reason();
  report["devices"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < build.device_count; ++i) {
    const DeviceInfo& device = *build.devices[i];
    nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
    for (std::size_t j = 0; j < device.kernel_count; ++j) {
      const KernelInfo& kernel = device.kernels[j];
      kernels.push_back({{"op", kernel.op}, {"kernel", kernel.kernel}, {"variant", kernel.variant}});
    }
    const Here here(device.name);
    report["devices"].push_back({{"name", device.name},
                                 {"description", device.description},
                                 {"emulated", support::kEmulated && std::string_view(device.name) == "cuda"},
                                 {"model", here.model},
                                 {"problem", here.problem},
                                 {"kernels", kernels}});
  }
  return report.dump() + "\n";
}

/// A device and its kernels, the instantiations of one kernel on one line.
std::string describe(const DeviceInfo& device) {
  std::string text = fmt::format("  {}: {}\n", device.name, device.description);
  const Here here(device.name);
  if (!here.model.empty()) text += fmt::format("    here: {}\n", here.model);
  if (!here.problem.empty()) text += fmt::format("    not here: {}\n", here.problem);
  std::string line;
  for (std::size_t j = 0; j < device.kernel_count; ++j) {
    const KernelInfo& kernel = device.kernels[j];
    const std::string head = fmt::format("    {} by {} for", kernel.op, kernel.kernel);
    const bool first = !line.starts_with(head + " ");
    if (first) {
      if (!line.empty()) text += line + "\n";
      line = head;
    }
    line += fmt::format("{} {}", first ? "" : ",", kernel.variant);
  }
  return line.empty() ? text : text + line + "\n";
}

std::string text_report(const BuildInfo& build) {
  const char* cuda = build.cuda_compiler != nullptr ? build.cuda_compiler : "none: built without CUDA";
  std::string text =
      fmt::format("sorot {}\ncompilers\n  host: {}\n  cuda: {}\ndevices\n", build.version, build.compiler, cuda);
  for (std::size_t i = 0; i < build.device_count; ++i) text += describe(*build.devices[i]);
  return text + auto_device_reason() + "\n";
}

}  // namespace

ExitCode run_info(const Arguments& arguments) {
  bool json = false;
  CLI::App app("Version, devices, kernels and compilers of this build, and which device --device auto takes.",
               "sorot info");
  app.add_flag("--json", json, "print one JSON object");
  if (!parse(app, arguments)) return ExitCode::kSuccess;
  print(json ? json_report(build_info()) : text_report(build_info()));
  return ExitCode::kSuccess;
}

}  // namespace sorot::tools
