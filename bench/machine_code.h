#pragma once

#include <iosfwd>
#include <map>
#include <string>
#include <utility>

#include "bench/gpu_model.h"

/// What the machine code of kernels says, from the checked-in table tests/cuda/resources_nvcc_*.csv.
namespace sorot::bench {

/// Of one pass through a kernel's main loop, per unit.
struct LoopFigures {
  Unit unit = Unit::mma;
  double issued = 0;  ///< instructions
  double mufu = 0;    ///< of which MUFU
};

/// The kernel function behind a plan's kernel and variant: "attention_sm80_plain", "bf16 128x64 d128" ->
/// "attention_sm80<bfloat16, 3ul, false>". Throws std::invalid_argument for what is no attention kernel of CUDA.
std::string function_of(const std::string& kernel, const std::string& variant);

class MachineCode {
 public:
  /// Reads a table; columns are known by their names. Throws std::runtime_error if it is none.
  explicit MachineCode(std::istream& table);

  /// The table of this checkout.
  static MachineCode of_checkout();

  /// Throws std::runtime_error if the table has no figures for it.
  LoopFigures of(const std::string& function, int compute_capability) const;

 private:
  std::map<std::pair<std::string, int>, LoopFigures> figures_;
};

}  // namespace sorot::bench
