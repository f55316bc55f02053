#pragma once

#include <string>
#include <vector>

#include "bench/attention_case.h"
#include "bench/gpu_model.h"
#include "bench/machine_code.h"

/// The time model of attention: counters of the emulator, machine code of nvcc, rates of a GPU. Only in builds that
/// have the emulator.
namespace sorot::bench {

struct ModelledAttention {
  std::string kernel, variant;
  double asked_bytes = 0;  ///< that blocks ask for; what they share comes from L2
  LaunchCounts counts;
  ModelledTimes times;
};

/// Runs the case, or smaller ones, on the emulator.
ModelledAttention model_attention(const AttentionCase& c, const Gpu& gpu, const MachineCode& code);

/// FFMA of a warp that attention_simt spends on products, all rows and columns of its tiles counted.
double simt_multiply_adds(const AttentionCase& c, const AttentionPlan& plan);

/// Prints a table, a row a case.
void print_attention_model(const Gpu& gpu, const std::vector<AttentionCase>& cases);

}  // namespace sorot::bench
