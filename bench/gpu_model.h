#pragma once

#include <string>

/// A time model of GPUs: how long a launch must take at least, by what it has to move and to issue. Pure arithmetic; a
/// model, not a measurement. The formulas and their limits are in README.md.
namespace sorot::bench {

/// Rates of a GPU. Where nothing else is said: of one multiprocessor (SM), in a clock.
struct Gpu {
  const char* name;         ///< as --model takes it
  const char* description;  ///< for people
  int compute_capability;
  int multiprocessors;
  double clock;   ///< Hz, at which the data sheet's peaks hold
  double memory;  ///< bytes a second, of the whole GPU
  double mma;     ///< mma.sync.m16n8k16 of f16 or bf16, dense, f32 accumulators: 4096 operations each
  double fma;     ///< FFMA of a warp
  double mufu;    ///< MUFU of a warp: exp2, reciprocals
  double issue;   ///< instructions of a warp, of any kind
  double shared;  ///< wavefronts of shared memory, up to 128 bytes each
};

/// Throws std::invalid_argument that lists those there are.
const Gpu& gpu_of(const std::string& name);

/// The names that gpu_of takes: "a100, h200".
std::string gpu_names();

/// What a unit of a kernel's main loop is.
enum class Unit { mma, fma };

/// What a launch does, over all its blocks.
struct LaunchCounts {
  Unit unit = Unit::mma;
  double units = 0;            ///< instructions of a warp
  double issued_per_unit = 0;  ///< instructions of any kind, the unit itself included
  double mufu_per_unit = 0;    ///< of which MUFU
  double shared_wavefronts = 0;
  double bytes = 0;  ///< that must cross between memory and chip
  double blocks = 1;
  bool even_blocks = true;  ///< all have the same to do
};

/// Microseconds.
struct ModelledTimes {
  double mma = 0, memory = 0, issue = 0, shared = 0;

  double most() const;
  const char* bound() const;  ///< which of them that is: "mma", "memory", "issue" or "shared"
};

/// What part of all work the busiest multiprocessor has at least.
double share_of_busiest(double blocks, int multiprocessors, bool even_blocks);

ModelledTimes model_times(const Gpu& gpu, const LaunchCounts& counts);

}  // namespace sorot::bench
