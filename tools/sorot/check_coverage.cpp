#include "tools/sorot/check_coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "sorot/version.h"

namespace sorot::tools {
namespace {

constexpr DType kDTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};
constexpr int kFewestRuns = 10;

std::size_t column(DType dtype) {
  return static_cast<std::size_t>(std::find(std::begin(kDTypes), std::end(kDTypes), dtype) - std::begin(kDTypes));
}

}  // namespace

Coverage::Coverage(std::vector<std::string> features, std::string device, std::vector<std::string> kernels)
    : features_(std::move(features)), device_(std::move(device)), kernels_(std::move(kernels)) {
  for (const std::string& kernel : kernels_) {
    cells_[kernel].resize(features_.size());
    totals_[kernel] = {};
  }
}

void Coverage::count(const std::string& kernel, const std::string& variant, DType dtype,
                     const std::vector<std::size_t>& features) {
  launched_.emplace(kernel, variant);
  ++totals_[kernel][column(dtype)].runs;
  std::vector<Row>& rows = cells_[kernel];
  rows.resize(features_.size());
  for (const std::size_t f : features) ++rows[f][column(dtype)].runs;
}

void Coverage::count_refused(const std::string& kernel, DType dtype, const std::vector<std::size_t>& features) {
  ++totals_[kernel][column(dtype)].refused;
  std::vector<Row>& rows = cells_[kernel];
  rows.resize(features_.size());
  for (const std::size_t f : features) ++rows[f][column(dtype)].refused;
}

void Coverage::print_table() const {
  for (const std::string& kernel : kernels_) {
    fmt::print("\n{:<44}", fmt::format("{} on {}: runs", kernel, device_));
    for (const DType dtype : kDTypes) fmt::print("{:>7}", name(dtype));
    const auto print = [](const std::string& what, const Row& row) {
      fmt::print("\n{:<44}", what);
      for (const Cell& cell : row) {
        fmt::print("{:>7}", cell.runs == 0 && cell.refused > 0 ? "-" : std::to_string(cell.runs));
      }
    };
    const std::vector<Row>& rows = cells_.at(kernel);
    for (std::size_t f = 0; f < rows.size(); ++f) print(features_[f], rows[f]);
    print("all", totals_.at(kernel));
    fmt::print("\n");
  }
}

std::vector<std::string> Coverage::gaps(const std::string& op) const {
  std::vector<std::string> gaps;
  for (const std::string& kernel : kernels_) {
    const std::vector<Row>& rows = cells_.at(kernel);
    for (std::size_t f = 0; f < rows.size(); ++f) {
      for (std::size_t d = 0; d < std::size(kDTypes); ++d) {
        const Cell& cell = rows[f][d];
        // What a kernel serves now and then - a transposed tensor with one row - it does not serve.
        constexpr std::int64_t kMostRefusalsPerRun = 10;
        const bool serves = cell.refused == 0 || cell.runs * kMostRefusalsPerRun > cell.refused;
        if (!serves || cell.runs >= kFewestRuns) continue;
        gaps.push_back(fmt::format("'{}' in {} on {}: {} runs, expected at least {}", features_[f], name(kDTypes[d]),
                                   kernel, cell.runs, kFewestRuns));
      }
    }
  }
  for (std::size_t d = 0; d < build_info().device_count; ++d) {
    const DeviceInfo& info = *build_info().devices[d];
    for (std::size_t k = 0; info.name == device_ && k < info.kernel_count; ++k) {
      const KernelInfo& instance = info.kernels[k];
      const bool wanted =
          op == instance.op && std::find(kernels_.begin(), kernels_.end(), instance.kernel) != kernels_.end();
      if (!wanted || launched_.contains({instance.kernel, instance.variant})) continue;
      gaps.push_back(fmt::format("{}<{}> is in this build, but was never launched", instance.kernel, instance.variant));
    }
  }
  return gaps;
}

}  // namespace sorot::tools
