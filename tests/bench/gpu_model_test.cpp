#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "bench/gpu_model.h"

/// Each term of the time model against numbers worked out by hand.
namespace sorot::bench {
namespace {

/// Rates that make sums easy: one SM and clock a microsecond apart from what a test sets.
constexpr Gpu kToy{"toy", "for sums by hand", 80, 10, 1e6, 1e6, 0.5, 2, 0.25, 4, 1};

/// 100 blocks on 10 SMs: every SM has a tenth.
LaunchCounts hundred_blocks() {
  LaunchCounts counts;
  counts.blocks = 100;
  return counts;
}

TEST(GpuModel, ProductsOnTensorCores) {
  LaunchCounts counts = hundred_blocks();
  counts.units = 1000;  // 100 an SM, 2 clocks each
  EXPECT_DOUBLE_EQ(model_times(kToy, counts).mma, 200);
}

TEST(GpuModel, ProductsBesideThem) {
  LaunchCounts counts = hundred_blocks();
  counts.unit = Unit::fma;
  counts.units = 1000;  // 100 an SM, 2 a clock
  EXPECT_DOUBLE_EQ(model_times(kToy, counts).mma, 50);
}

TEST(GpuModel, MemoryIsOfAllTogether) {
  LaunchCounts counts = hundred_blocks();
  counts.bytes = 3000;
  EXPECT_DOUBLE_EQ(model_times(kToy, counts).memory, 3000);
  counts.blocks = 1;
  EXPECT_DOUBLE_EQ(model_times(kToy, counts).memory, 3000);
}

TEST(GpuModel, IssueSlots) {
  LaunchCounts counts = hundred_blocks();
  counts.units = 1000;
  counts.issued_per_unit = 6;  // 600 an SM, 4 a clock
  EXPECT_DOUBLE_EQ(model_times(kToy, counts).issue, 150);
}

TEST(GpuModel, IssueOfSpecialFunctionsIsSlower) {
  LaunchCounts counts = hundred_blocks();
  counts.units = 1000;
  counts.issued_per_unit = 6;
  counts.mufu_per_unit = 0.5;  // 50 an SM, 4 clocks each
  EXPECT_DOUBLE_EQ(model_times(kToy, counts).issue, 200);
}

TEST(GpuModel, WavefrontsOfSharedMemory) {
  LaunchCounts counts = hundred_blocks();
  counts.shared_wavefronts = 7000;
  EXPECT_DOUBLE_EQ(model_times(kToy, counts).shared, 700);
}

TEST(GpuModel, WholeWavesOfEvenBlocks) {
  EXPECT_DOUBLE_EQ(share_of_busiest(100, 10, true), 0.1);
  EXPECT_DOUBLE_EQ(share_of_busiest(101, 10, true), 11.0 / 101);
  EXPECT_DOUBLE_EQ(share_of_busiest(4, 10, true), 0.25);
}

/// Longer ones beside shorter ones may come out even; but no SM has less than a mean block, if it has one.
TEST(GpuModel, BlocksOfUnevenLength) {
  EXPECT_DOUBLE_EQ(share_of_busiest(101, 10, false), 0.1);
  EXPECT_DOUBLE_EQ(share_of_busiest(4, 10, false), 0.25);
}

TEST(GpuModel, TheBoundIsTheLargestTerm) {
  EXPECT_STREQ((ModelledTimes{4, 3, 2, 1}.bound()), "mma");
  EXPECT_STREQ((ModelledTimes{3, 4, 2, 1}.bound()), "memory");
  EXPECT_STREQ((ModelledTimes{3, 2, 4, 1}.bound()), "issue");
  EXPECT_STREQ((ModelledTimes{3, 2, 1, 4}.bound()), "shared");
  EXPECT_DOUBLE_EQ((ModelledTimes{3, 2, 1, 4}.most()), 4);
}

/// What the data sheets say, out of the rates of an SM.
TEST(GpuModel, PeaksAreThoseOfTheDataSheets) {
  const auto tflops = [](const Gpu& gpu, double operations_a_clock) {
    return operations_a_clock * gpu.multiprocessors * gpu.clock / 1e12;
  };
  EXPECT_NEAR(tflops(gpu_of("a100"), gpu_of("a100").mma * 4096), 312, 1);
  EXPECT_NEAR(tflops(gpu_of("h200"), gpu_of("h200").mma * 4096 * 3 / 2), 989, 1);  // mma.sync reaches two thirds
  EXPECT_NEAR(tflops(gpu_of("a100"), gpu_of("a100").fma * 64), 19.5, 0.1);
}

TEST(GpuModel, RefusesAnUnknownGpuAndListsTheOthers) {
  try {
    gpu_of("v100");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(std::string(error.what()), "there is no model of 'v100', expected one of a100, h200");
  }
}

}  // namespace
}  // namespace sorot::bench
