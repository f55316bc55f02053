#include <benchmark/benchmark.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>

#include "bench/bench.h"

namespace {

nlohmann::json read_cases(const std::string& op) {
  const std::string path = std::string(SOROT_BENCH_CASES) + "/" + op + ".json";
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return nlohmann::json::parse(file);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("sorot", sorot::build_info().version);
  benchmark::AddCustomContext("compiler", sorot::build_info().compiler);
  try {
    sorot::bench::register_attention(read_cases("attention"));
    sorot::bench::register_attention_overhead();
    if (benchmark::RunSpecifiedBenchmarks() == 0) return 2;  // the filter matches nothing, which has been said
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sorot_bench: %s\n", error.what());
    return 2;
  }
  benchmark::Shutdown();
  return sorot::bench::anything_failed() ? 1 : 0;
}
