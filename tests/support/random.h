#pragma once

#include <cstdint>
#include <initializer_list>

/// Random numbers that are the same on every machine: no standard distribution, no libm.
namespace sorot::support {

/// SplitMix64 (Steele, Lea and Flood 2014).
class Random {
 public:
  /// Streams of different keys are independent: Random({seed, index, kQueryStream}).
  explicit Random(std::initializer_list<std::uint64_t> key) noexcept {
    for (const std::uint64_t word : key) {
      state_ ^= word;
      state_ = next();
    }
  }

  std::uint64_t next() noexcept {
    state_ += 0x9E3779B97F4A7C15;
    std::uint64_t x = state_;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
    x = (x ^ x >> 27) * 0x94D049BB133111EB;
    return x ^ x >> 31;
  }

  /// 0 <= result < count. The bias of the remainder is below 2^-40 for the counts met here.
  std::int64_t below(std::int64_t count) noexcept {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(count));
  }

  /// first <= result <= last.
  std::int64_t between(std::int64_t first, std::int64_t last) noexcept { return first + below(last - first + 1); }

  template <class T>
  T pick(std::initializer_list<T> values) noexcept {
    return values.begin()[below(static_cast<std::int64_t>(values.size()))];
  }

  bool chance(double probability) noexcept { return uniform() < probability; }

  /// [0, 1)
  double uniform() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }

  /// Mean 0, variance 1, within +-3.47: the sum of four uniforms.
  double normal() noexcept {
    constexpr double kSqrt3 = 1.7320508075688772;
    return (uniform() + uniform() + uniform() + uniform() - 2) * kSqrt3;
  }

 private:
  std::uint64_t state_ = 0x243F6A8885A308D3;
};

}  // namespace sorot::support
