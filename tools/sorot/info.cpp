#include <nlohmann/json.hpp>

#include "tools/sorot/command.h"

/// sorot info: what this build is and on which devices it computes.
namespace sorot::tools {
namespace {

constexpr char kNoCuda[] = "none: built without CUDA";

std::string json_report(const BuildInfo& build) {
  nlohmann::ordered_json report;
  report["version"] = build.version;
  report["compilers"]["host"] = build.compiler;
  report["compilers"]["cuda"] = nullptr;
  report["auto"]["device"] = make_context("auto").device_name();
  report["auto"]["reason"] = auto_device_reason();
  report["devices"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < build.device_count; ++i) {
    const DeviceInfo& device = *build.devices[i];
    nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
    for (std::size_t j = 0; j < device.kernel_count; ++j) {
      const KernelInfo& kernel = device.kernels[j];
      kernels.push_back({{"op", kernel.op}, {"kernel", kernel.kernel}, {"variant", kernel.variant}});
    }
    report["devices"].push_back({{"name", device.name}, {"description", device.description}, {"kernels", kernels}});
  }
  return report.dump() + "\n";
}

/// A device and its kernels, the instantiations of one kernel on one line.
std::string describe(const DeviceInfo& device) {
  std::string text = fmt::format("  {}: {}\n", device.name, device.description);
  std::string line;
  for (std::size_t j = 0; j < device.kernel_count; ++j) {
    const KernelInfo& kernel = device.kernels[j];
    const std::string head = fmt::format("    {} by {} for", kernel.op, kernel.kernel);
    if (!line.starts_with(head + " ")) {
      if (!line.empty()) text += line + "\n";
      line = head;
    }
    line += fmt::format(" {}", kernel.variant);
  }
  return line.empty() ? text : text + line + "\n";
}

std::string text_report(const BuildInfo& build) {
  std::string text =
      fmt::format("sorot {}\ncompilers\n  host: {}\n  cuda: {}\ndevices\n", build.version, build.compiler, kNoCuda);
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
