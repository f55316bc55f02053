#include "tools/sorot/emulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "tests/support/random.h"
#include "tools/sorot/command.h"

namespace sorot::tools {
namespace {

using emulator::Order;

constexpr Order kOrders[] = {Order::forward, Order::reverse, Order::random};

const char* name(Order order) {
  switch (order) {
    case Order::forward: return "forward";
    case Order::reverse: return "reverse";
    case Order::random: break;
  }
  return "random";
}

Order parse_order(const std::string& text) {
  for (const Order order : kOrders) {
    if (text == name(order)) return order;
  }
  refuse("--schedule is '{}', expected forward, reverse or random", text);
}

int parse_profile(const std::string& text) {
  for (const int profile : emulator::kProfiles) {
    if (text == std::to_string(profile)) return profile;
  }
  refuse("--profile is '{}', expected one of {}", text, fmt::join(emulator::kProfiles, ", "));
}

std::uint64_t parse_seed(const std::string& text) {
  const std::int64_t seed = parse_integer("--seed", text);
  if (seed < 0) refuse("--seed is {}, expected 0 or more", seed);
  return static_cast<std::uint64_t>(seed);
}

void set([[maybe_unused]] Order order, [[maybe_unused]] int profile, [[maybe_unused]] std::uint64_t seed,
         [[maybe_unused]] bool race) {
  if constexpr (support::kEmulated) {
    emulator::Settings settings = emulator::settings();
    settings.order = order;
    settings.profile = profile;
    settings.seed = settings.error_seed = seed;
    settings.race = race;
    emulator::apply(settings);
  }
}

void declare_choice(CLI::App& app, EmulationOptions& options, const char* order, const char* profile) {
  app.add_option("--schedule", options.schedule,
                 fmt::format("emulated cuda: order of threads, forward, reverse or random (default {})", order))
      ->type_name("ORDER")
      ->group("Device");
  app.add_option(
         "--profile", options.profile,
         fmt::format("emulated cuda: the GPU it is, {} (default {})", fmt::join(emulator::kProfiles, ", "), profile))
      ->type_name("SM")
      ->group("Device");
}

}  // namespace

void declare_drawn_emulation(CLI::App& app, EmulationOptions& options) {
  declare_choice(app, options, "drawn with each case", "drawn with each case");
}

void declare_emulation(CLI::App& app, EmulationOptions& options) {
  const emulator::Settings defaults;
  declare_choice(app, options, name(defaults.order), std::to_string(defaults.profile).c_str());
  app.add_option("--seed", options.seed, "emulated cuda: seed of what is random (default 0)")
      ->type_name("N")
      ->group("Device");
  app.add_flag("--race", options.race, "emulated cuda: accesses that no barrier orders are an error, however they end")
      ->group("Device");
}

Emulation::Emulation(const EmulationOptions& options, const std::string& device)
    : emulated_(support::kEmulated && device == "cuda") {
  const char* option = !options.schedule.empty()  ? "--schedule"
                       : !options.profile.empty() ? "--profile"
                       : !options.seed.empty()    ? "--seed"
                       : options.race             ? "--race"
                                                  : nullptr;
  if (option != nullptr && !support::kEmulated) {
    refuse("{} needs a build whose CUDA device is emulated (cmake -DSOROT_CUDA=EMULATED), this one has none", option);
  }
  if (option != nullptr && !emulated_) refuse("{} is for --device cuda, not for {}", option, device);
  if (!options.schedule.empty()) order_ = parse_order(options.schedule);
  if (!options.profile.empty()) profile_ = parse_profile(options.profile);
  if (!options.seed.empty()) seed_ = parse_seed(options.seed);
  race_ = options.race;
}

void Emulation::apply() const {
  const emulator::Settings defaults;
  if (emulated_) set(order_.value_or(defaults.order), profile_.value_or(defaults.profile), seed_, race_);
}

void Emulation::apply_drawn(std::uint64_t seed, std::uint64_t index) const {
  constexpr std::uint64_t kStream = 0xE301;
  support::Random random({seed, index, kStream});
  const Order order = kOrders[random.below(std::size(kOrders))];
  const int profile = emulator::kProfiles[random.below(std::size(emulator::kProfiles))];
  if (emulated_) set(order_.value_or(order), profile_.value_or(profile), seed, false);
}

std::string Emulation::options() const {
  if constexpr (support::kEmulated) {
    const emulator::Settings settings = emulator::settings();
    if (emulated_) return fmt::format(" --profile {} --schedule {}", settings.profile, name(settings.order));
  }
  return "";
}

}  // namespace sorot::tools
