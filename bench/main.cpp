#include <benchmark/benchmark.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>

#include "bench/attention_model.h"
#include "bench/bench.h"

namespace {

nlohmann::json read_cases(const std::string& op) {
  const std::string path = std::string(SOROT_BENCH_CASES) + "/" + op + ".json";
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return nlohmann::json::parse(file);
}

void print_help() {
  std::printf(
      "sorot_bench [--model GPU | options of Google Benchmark]\n"
      "          --model GPU: prints what bounds every case on that GPU (%s), a model and no measurement\n\n",
      sorot::bench::gpu_names().c_str());
  benchmark::PrintDefaultHelp();
}

/// The GPU that `--model GPU` or `--model=GPU` names; none without the option. It stands alone.
std::optional<std::string> model_option(int argc, char** argv) {
  for (int n = 1; n < argc; ++n) {
    const std::string argument = argv[n];
    const bool joined = argument.rfind("--model=", 0) == 0;
    if (argument != "--model" && !joined) continue;
    if (joined && argc == 2) return argument.substr(sizeof "--model=" - 1);
    if (!joined && argc == 3 && n == 1) return argv[2];
    throw std::invalid_argument("--model takes the name of a GPU (" + sorot::bench::gpu_names() +
                                ") and goes with no other option");
  }
  return std::nullopt;
}

void print_model([[maybe_unused]] const sorot::bench::Gpu& gpu) {
  if constexpr (sorot::support::kEmulated) {
    sorot::bench::print_attention_model(gpu, sorot::bench::read_attention_cases(read_cases("attention")));
  } else {
    throw std::runtime_error("--model counts on the emulator, which this build lacks: cmake --preset emulated");
  }
}

int run_benchmarks(int argc, char** argv) {
  benchmark::Initialize(&argc, argv, print_help);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("sorot", sorot::build_info().version);
  benchmark::AddCustomContext("compiler", sorot::build_info().compiler);
  sorot::bench::register_attention(read_cases("attention"));
  sorot::bench::register_attention_overhead();
  if (benchmark::RunSpecifiedBenchmarks() == 0) return 2;  // the filter matches nothing, which has been said
  benchmark::Shutdown();
  return sorot::bench::anything_failed() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (const auto gpu = model_option(argc, argv)) {
      print_model(sorot::bench::gpu_of(*gpu));
      return 0;
    }
    return run_benchmarks(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sorot_bench: %s\n", error.what());
    return 2;
  }
}
