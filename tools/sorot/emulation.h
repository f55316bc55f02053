#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "cuda/emulator/control.h"
#include "tests/support/device.h"

/// What the command lets people choose about the emulated CUDA device. Other builds have nothing to choose.
namespace sorot::tools {

struct EmulationOptions {
  std::string schedule, profile, seed;  ///< as given; empty: not given
  bool race = false;
};

/// Declares --schedule and --profile for a command that draws what is not chosen.
void declare_drawn_emulation(CLI::App& app, EmulationOptions& options);

/// Declares --schedule, --profile, --seed and --race for a command that runs once.
void declare_emulation(CLI::App& app, EmulationOptions& options);

/// The choices, checked. In a build without the emulator, or for another device, a choice is a Failure.
class Emulation {
 public:
  Emulation(const EmulationOptions& options, const std::string& device);

  /// Sets the emulator as chosen; what is not chosen has its default. When asynchronous copies land goes with the
  /// order.
  void apply() const;

  /// Sets the emulator as chosen; what is not chosen is drawn, and depends on nothing but seed and index.
  void apply_drawn(std::uint64_t seed, std::uint64_t index) const;

  /// The options that bring back what is set, with a blank in front; empty for any other device.
  std::string options() const;

 private:
  bool emulated_;
  std::optional<emulator::Order> order_;
  std::optional<int> profile_;
  std::uint64_t seed_ = 0;  ///< of the random order and of the errors of approximate instructions
  bool race_ = false;
};

}  // namespace sorot::tools
