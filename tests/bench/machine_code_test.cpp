#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>
#include <string>

#include "bench/machine_code.h"
#include "sorot/sorot.h"

namespace sorot::bench {
namespace {

constexpr char kHeader[] = "kernel,arch,pass,loop,mufu,reason\n";

MachineCode read(const std::string& rows) {
  std::istringstream text(kHeader + rows);
  return MachineCode(text);
}

TEST(MachineCode, ReadsColumnsByName) {
  std::istringstream text("mufu,loop,reason,pass,arch,kernel\n0.5,3.961,\"one, two\",128 HMMA,80,\"f<a, 1ul>\"\n");
  const LoopFigures figures = MachineCode(text).of("f<a, 1ul>", 80);
  EXPECT_EQ(figures.unit, Unit::mma);
  EXPECT_DOUBLE_EQ(figures.issued, 3.961);
  EXPECT_DOUBLE_EQ(figures.mufu, 0.5);
}

TEST(MachineCode, TellsArchitecturesAndUnitsApart) {
  const MachineCode code = read("f,80,64 FFMA,1.25,0,\nf,90,64 HMMA,2.5,1,\n");
  EXPECT_EQ(code.of("f", 80).unit, Unit::fma);
  EXPECT_EQ(code.of("f", 90).unit, Unit::mma);
  EXPECT_DOUBLE_EQ(code.of("f", 80).issued, 1.25);
  EXPECT_THROW(code.of("f", 100), std::runtime_error);
}

TEST(MachineCode, KernelsWithoutALoopHaveNoFigure) { EXPECT_THROW(read("f,80,,,,\n").of("f", 80), std::runtime_error); }

TEST(MachineCode, RefusesWhatIsNoTable) {
  std::istringstream no_column("kernel,arch,pass,mufu\n");
  EXPECT_THROW(MachineCode{no_column}, std::runtime_error);
  EXPECT_THROW(read("f,80,64 HMMA,2.5\n"), std::runtime_error);      // fields are missing
  EXPECT_THROW(read("f,80,64 IMMA,2.5,0,\n"), std::runtime_error);   // another unit
  EXPECT_THROW(read("f,80,64 HMMA,many,0,\n"), std::runtime_error);  // no number
  EXPECT_THROW(read("f,80,64 HMMA,2.5 or so,0,\n"), std::runtime_error);
}

TEST(MachineCode, FunctionBehindAPlan) {
  EXPECT_EQ(function_of("attention_simt", "f32 64x64 d64"), "attention_simt<float, 64, false>");
  EXPECT_EQ(function_of("attention_simt", "bf16 8x64 d128"), "attention_simt<bfloat16, 128, true>");
  EXPECT_THROW(function_of("attention_reference", "f32"), std::invalid_argument);
  EXPECT_THROW(function_of("attention_sm80_plain", "f16 128x64 d65"), std::invalid_argument);
}

/// Whatever a plan chooses on the GPUs of the model has a figure in the table of this checkout.
TEST(MachineCode, EveryKernelHasAFigure) {
  const MachineCode code = MachineCode::of_checkout();
  int kernels = 0;
  for (std::size_t d = 0; d < build_info().device_count; ++d) {
    const DeviceInfo& device = *build_info().devices[d];
    if (std::string(device.name) != "cuda") continue;
    for (std::size_t n = 0; n < device.kernel_count; ++n) {
      const KernelInfo& kernel = device.kernels[n];
      if (std::string(kernel.op) != "attention") continue;
      ++kernels;
      const std::string function = function_of(kernel.kernel, kernel.variant);
      for (const int compute_capability : {80, 90}) {
        const LoopFigures figures = code.of(function, compute_capability);
        const bool tensor_cores = std::string(kernel.kernel) != "attention_simt";
        EXPECT_EQ(figures.unit, tensor_cores ? Unit::mma : Unit::fma) << function;
        EXPECT_GE(figures.issued, 1) << function << ": less than the unit itself";
        EXPECT_LT(figures.issued, 10) << function;
      }
    }
  }
  if (kernels == 0) GTEST_SKIP() << "this build has no CUDA";
}

}  // namespace
}  // namespace sorot::bench
