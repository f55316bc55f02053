#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "sorot/dtype.h"
#include "tests/machine/isa_kernels.h"
#include "tests/machine/on_device.h"

/// Every function of the device's door against its scalar definition: on the emulator, and on a GPU where there is one.
namespace sorot::machine {
namespace {

class Isa : public OnDevice {
 protected:
  Words run(Probe probe, const Words& a, const Words& b, const Words& c, const Words& out) {
    const DeviceWords da(a, stream_);
    const DeviceWords db(b, stream_);
    const DeviceWords dc(c, stream_);
    const DeviceWords dout(out, stream_);
    const auto blocks = static_cast<unsigned>(a.size() / kProbeThreads);
    const Status status = launch_probe(probe, blocks, {da.data(), db.data(), dc.data(), dout.data()}, stream_);
    EXPECT_TRUE(status.ok()) << status.message();
    return dout.get();
  }
  Words run(Probe probe, const Words& a, const Words& b) { return run(probe, a, b, b, Words(a.size(), 0)); }
  Words run(Probe probe, const Words& a) { return run(probe, a, a); }

  /// out[i] == expected(i) for all i.
  void expect(Probe probe, const Words& a, const Words& b, const std::function<std::uint32_t(std::size_t)>& expected) {
    const Words out = run(probe, a, b);
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], expected(i)) << "at " << i << " for " << a[i];
  }
  void expect(Probe probe, const Words& a, const std::function<std::uint32_t(std::size_t)>& expected) {
    expect(probe, a, a, expected);
  }
};

constexpr std::size_t kCount = 4 * kProbeThreads;

Words random_words(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Words words(count);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random());
  return words;
}
Words small_words(std::size_t count, unsigned seed) {
  Words words = random_words(count, seed);
  for (std::uint32_t& word : words) word %= 97;
  return words;
}

/// Numbers of every magnitude, with the special ones in front.
Words floats(unsigned seed) {
  Words words = random_words(65536, seed);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float special[] = {0.0F,  -0.0F,    1.0F,  -1.0F,    kInf,     -kInf,      std::nanf(""), 0x1p-126F, 0x1p-149F,
                           65504, 65519.9F, 65520, 0x1p-24F, 0x1p-25F, 0x1.8p-25F, 3.4028235e38F, 3.39e38F,  1e-40F,
                           2049,  2051,     257,   259,      0.5F,     -126,       -127,          127,       128};
  std::size_t n = 0;
  for (const float x : special) words[n++] = bits(x);
  return words;
}

std::size_t warp_start(std::size_t i) { return i / 32 * 32; }

TEST_F(Isa, Indices) {
  const Words a(kCount, 0);
  expect(Probe::thread_and_block_index, a, [](std::size_t i) { return i % 64 + 1000 * (i / 64); });
  expect(Probe::block_and_grid_size, a, [](std::size_t) { return 64 + 4000 + 7; });
}

TEST_F(Isa, Barriers) {
  const Words a = small_words(kCount, 1);
  expect(Probe::sync_block, a, [&](std::size_t i) { return a[i / 64 * 64 + 63 - i % 64]; });
  expect(Probe::sync_warp, a, [&](std::size_t i) { return a[i ^ 31]; });
  expect(Probe::sync_named, a, [&](std::size_t i) { return i % 64 < 32 ? a[i] + a[i + 32] : a[i]; });
  expect(Probe::fences, a, [&](std::size_t i) { return a[i]; });
  Words flags(kCount, 1);
  flags[70] = 0;  // one thread of block 1
  expect(Probe::sync_block_or, flags, [](std::size_t i) { return i / 64 == 1 ? 1U : 0U; });
  const Words nonzero(kCount, 5);
  expect(Probe::spin_wait, nonzero, [](std::size_t) { return 5U; });
}

TEST_F(Isa, Shuffles) {
  const Words a = random_words(kCount, 2);
  const Words lanes = random_words(kCount, 3);
  expect(Probe::shuffle, a, lanes, [&](std::size_t i) { return a[warp_start(i) + lanes[i] % 32]; });
  expect(Probe::shuffle_xor, a, [&](std::size_t i) { return a[i ^ 5]; });
  expect(Probe::shuffle_up, a, [&](std::size_t i) { return i % 32 < 3 ? a[i] : a[i - 3]; });
  expect(Probe::shuffle_down, a, [&](std::size_t i) { return i % 32 > 28 ? a[i] : a[i + 3]; });
  expect(Probe::shuffle_in_half_a_warp, a, [&](std::size_t i) { return a[i ^ 9]; });
}

TEST_F(Isa, Votes) {
  Words a = random_words(kCount, 4);
  for (std::size_t i = 0; i < 32; ++i) a[i] |= 1;                // all of warp 0
  for (std::size_t i = 32; i < 64; ++i) a[i] &= ~1U;             // none of warp 1
  for (std::size_t i = 64; i < 96; ++i) a[i] = i == 70 ? 1 : 0;  // one of warp 2
  const auto vote = [&](std::size_t i) {
    std::uint32_t lanes = 0;
    for (std::size_t lane = 0; lane < 32; ++lane) lanes |= (a[warp_start(i) + lane] & 1) << lane;
    return lanes;
  };
  expect(Probe::ballot, a, vote);
  expect(Probe::any, a, [&](std::size_t i) { return vote(i) != 0 ? 1U : 0U; });
  expect(Probe::all, a, [&](std::size_t i) { return vote(i) == 0xFFFF'FFFF ? 1U : 0U; });
}

TEST_F(Isa, MemoryOfEveryWidth) {
  const Words a = random_words(kCount, 5);
  const std::pair<Probe, std::size_t> probes[] = {
      {Probe::memory_1, 1}, {Probe::memory_2, 2}, {Probe::memory_4, 4}, {Probe::memory_8, 8}, {Probe::memory_16, 16}};
  for (const auto& [probe, width] : probes) {
    const Words out = run(probe, a);
    constexpr std::size_t kBlockBytes = 4 * kProbeThreads;
    const auto* in = reinterpret_cast<const unsigned char*>(a.data());
    const auto* got = reinterpret_cast<const unsigned char*>(out.data());
    for (std::size_t byte = 0; byte < 4 * kCount; ++byte) {
      const std::size_t block = byte / kBlockBytes * kBlockBytes;
      const std::size_t element = byte % kBlockBytes / width;
      const std::size_t source = block + kBlockBytes - (element + 1) * width + byte % width;
      ASSERT_EQ(got[byte], in[source]) << width << " bytes wide, byte " << byte;
    }
  }
}

TEST_F(Isa, Atomics) {
  const Words a = small_words(kCount, 6);
  const Words where = small_words(kCount, 7);
  Words sums(kCount, 0);
  Words most(kCount, 0);
  for (std::size_t i = 0; i < kCount; ++i) {
    sums[where[i] % 64] += a[i];
    most[where[i] % 64] = std::max(most[where[i] % 64], a[i]);
  }
  const Words zeros(kCount, 0);
  EXPECT_EQ(run(Probe::atomic_add_global, zeros, where, a, zeros), sums);
  EXPECT_EQ(run(Probe::atomic_max_global, zeros, where, a, zeros), most);
  EXPECT_EQ(run(Probe::atomic_add_float, a)[0], bits(static_cast<float>(kCount)));
  expect(Probe::atomic_add_shared, a, [&](std::size_t i) {
    std::uint32_t sum = 0;
    for (std::size_t t = 0; t < 64; ++t) sum += a[i / 64 * 64 + t];
    return sum;
  });
  expect(Probe::atomic_max_shared, a, [&](std::size_t i) {
    std::uint32_t highest = 0;
    for (std::size_t t = 0; t < 64; ++t) highest = std::max(highest, a[i / 64 * 64 + t] >> 1);
    return highest;
  });
  const Words ones(kCount, 1);
  const Words exchanged = run(Probe::atomic_exchange_global, a, a, a, ones);
  const Words compared = run(Probe::atomic_compare_exchange_global, a, a, a, ones);
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(exchanged[i], a[i] * 1000 + 1);
    EXPECT_EQ(compared[i], (a[i] % 2 == 0 ? a[i] : 1) * 1000 + 1);  // an odd word expects 0, and finds 1
  }
}

/// Equal bits, or NaN both.
void expect_number(std::uint32_t got, float expected, std::uint32_t operand) {
  if (std::isnan(expected)) {
    ASSERT_TRUE(std::isnan(number(got))) << std::hex << operand;
  } else {
    ASSERT_EQ(got, bits(expected)) << std::hex << operand;
  }
}

TEST_F(Isa, Widening) {
  Words halves(65536);
  for (std::uint32_t h = 0; h < 65536; ++h) halves[h] = h;
  const Words f16 = run(Probe::to_float_f16, halves);
  const Words bf16 = run(Probe::to_float_bf16, halves);
  for (std::uint32_t h = 0; h < 65536; ++h) {
    // IEEE binary16: sign, 5 bits of exponent (bias 15), 10 of fraction; bfloat16 is the upper half of a float.
    const int exponent = static_cast<int>(h >> 10 & 31);
    const double fraction = h & 1023;
    double value = exponent == 31  ? (fraction != 0 ? std::nan("") : std::numeric_limits<double>::infinity())
                   : exponent == 0 ? std::ldexp(fraction, -24)
                                   : std::ldexp(1024 + fraction, exponent - 25);
    if ((h & 0x8000) != 0) value = -value;
    expect_number(f16[h], static_cast<float>(value), h);
    expect_number(bf16[h], number(h << 16), h);
  }
  const Words words = random_words(kCount, 8);
  expect(Probe::bits_as, words, [&](std::size_t i) { return words[i]; });
}

/// Against the library's own conversions, which tests/core holds to their definition.
TEST_F(Isa, Rounding) {
  const Words a = floats(9);
  const Words f32 = run(Probe::from_float_f32, a);
  const Words to = run(Probe::to_float_f32, a);
  const Words f16 = run(Probe::from_float_f16, a);
  const Words bf16 = run(Probe::from_float_bf16, a);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float x = number(a[i]);
    expect_number(f32[i], x, a[i]);
    expect_number(to[i], x, a[i]);
    const auto got16 = float16::from_bits(static_cast<std::uint16_t>(f16[i]));
    const auto gotb16 = bfloat16::from_bits(static_cast<std::uint16_t>(bf16[i]));
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(got16)) && std::isnan(static_cast<float>(gotb16)));
      continue;
    }
    ASSERT_EQ(f16[i], float16(x).bits) << x;
    ASSERT_EQ(bf16[i], bfloat16(x).bits) << x;
  }
}

TEST_F(Isa, RoundingOfPairs) {
  const Words a = floats(16);
  Words b = floats(17);
  std::rotate(b.begin(), b.begin() + 3, b.begin() + 29);
  for (const auto& [pairs, single] : {std::pair(Probe::from_floats_f16, Probe::from_float_f16),
                                      std::pair(Probe::from_floats_bf16, Probe::from_float_bf16)}) {
    const Words got = run(pairs, a, b);
    const Words low = run(single, a);
    const Words high = run(single, b);
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!std::isnan(number(a[i]))) {
        ASSERT_EQ(got[i] & 0xFFFF, low[i]) << number(a[i]);
      }
      if (!std::isnan(number(b[i]))) {
        ASSERT_EQ(got[i] >> 16, high[i]) << number(b[i]);
      }
    }
  }
  expect(Probe::keep, a, [&](std::size_t i) { return a[i]; });
}

TEST_F(Isa, ExactArithmetic) {
  const Words a = floats(10);
  Words b = floats(11);
  std::rotate(b.begin(), b.begin() + 5, b.begin() + 27);  // pairs of special numbers
  const Words c = floats(12);
  const Words fma = run(Probe::fma, a, b, c, Words(a.size(), 0));
  const Words max = run(Probe::max, a, b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    expect_number(fma[i], std::fma(number(a[i]), number(b[i]), number(c[i])), a[i]);
    const float expected = std::fmax(number(a[i]), number(b[i]));
    if (expected != 0) expect_number(max[i], expected, a[i]);  // of 0 and -0 either
  }
}

/// Distance in units of the last place of the exact value.
double ulps(float got, double exact) {
  const double unit = std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
  return std::abs(static_cast<double>(got) - exact) / unit;
}

TEST_F(Isa, LibraryFunctions) {
  const Words a = floats(13);
  const Words log = run(Probe::log, a);
  const Words tanh = run(Probe::tanh, a);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(number(a[i]));
    // CUDA C++ Programming Guide, mathematical functions: logf 1 ulp, tanhf 2 ulp; both plus rounding.
    if (const double exact = std::log(x); std::isfinite(exact) && exact != 0) {
      ASSERT_LE(ulps(number(log[i]), exact), 2) << x;
    } else {
      expect_number(log[i], static_cast<float>(exact), a[i]);
    }
    if (const double exact = std::tanh(x); std::isfinite(exact) && exact != 0) {
      ASSERT_LE(ulps(number(tanh[i]), exact), 2.5) << x;
      ASSERT_LE(std::abs(number(tanh[i])), 1.0F);
    } else {
      expect_number(tanh[i], static_cast<float>(exact), a[i]);
    }
  }
}

TEST_F(Isa, ReciprocalWithinItsBound) {
  const Words a = floats(18);
  const Words out = run(Probe::reciprocal_approx, a);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float x = number(a[i]);
    const float flushed = std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x;
    const double exact = 1 / static_cast<double>(flushed);
    if (!std::isfinite(exact) || exact == 0) {
      expect_number(out[i], static_cast<float>(exact), a[i]);
    } else if (std::abs(exact) < 0x1.00001p-126) {
      ASSERT_LE(std::abs(number(out[i])), 0x1.00002p-126F) << x;  // 0, or just not subnormal
    } else {
      ASSERT_LE(std::abs(static_cast<double>(number(out[i])) / exact - 1), 0x1p-23 + 0x1p-24) << x;
    }
  }
}

TEST_F(Isa, Exp2WithinItsBound) {
  Words a = floats(14);
  std::mt19937 random(15);
  std::uniform_real_distribution<float> common(-130, 130);
  for (std::size_t i = 100; i < a.size(); ++i) a[i] = bits(common(random));
  const Words out = run(Probe::exp2_approx, a);
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(number(a[i]));
    const double exact = std::exp2(x);
    if (std::isnan(x) || std::isinf(x) || std::fpclassify(number(a[i])) == FP_SUBNORMAL || x == 0) {
      expect_number(out[i], static_cast<float>(std::isnan(x) || std::isinf(x) ? exact : 1.0), a[i]);
    } else if (exact < 0x1.00001p-126) {
      ASSERT_LE(number(out[i]), 0x1.00002p-126F) << x;  // 0, or just not subnormal
      if (exact < 0x1.fffp-127) {
        ASSERT_EQ(number(out[i]), 0.0F) << x;
      }
    } else if (exact > 0x1.fffffp127) {
      ASSERT_GE(number(out[i]), 0x1.ffffep127F) << x;
    } else {
      // 2^-22.5, and half a unit in the last place by rounding to f32.
      worst = std::max(worst, std::abs(static_cast<double>(number(out[i])) / exact - 1));
    }
  }
  EXPECT_LE(worst, 0x1p-22 * 0.7072 + 0x1p-24);
}

}  // namespace
}  // namespace sorot::machine
