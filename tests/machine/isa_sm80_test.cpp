#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "sorot/dtype.h"
#include "tests/machine/isa_sm80_kernels.h"
#include "tests/machine/on_device.h"

/// The instructions of sm_80 against the pictures of the PTX ISA, written out here: on the emulator, and on a GPU that
/// has them.
namespace sorot::machine {
namespace {

constexpr std::size_t kLanes = 32;

/// PTX ISA, ldmatrix and mma.m16n8k16: which lane holds the pairs of neighbours (columns 0-1, 2-3, 4-5, 6-7) of the
/// eight rows of an 8x8 matrix, of a quarter of A, of a half of C and D.
constexpr std::size_t kOwner[8][4] = {{0, 1, 2, 3},     {4, 5, 6, 7},     {8, 9, 10, 11},   {12, 13, 14, 15},
                                      {16, 17, 18, 19}, {20, 21, 22, 23}, {24, 25, 26, 27}, {28, 29, 30, 31}};

/// mma.m16n8k16, A of 16x16: a0 a1 are top left, a2 a3 below, a4 a5 top right, a6 a7 below; two to a register.
constexpr std::size_t kRegisterOfA[2][2] = {{0, 2}, {1, 3}};

/// mma.m16n8k16, B of 16x8: which lane holds the pairs of rows 0-1, 2-3 ... 14-15 of the eight columns; b0 b1, the
/// first register, in the upper half, b2 b3 in the lower.
constexpr std::size_t kOwnerOfB[8][8] = {{0, 4, 8, 12, 16, 20, 24, 28},  {1, 5, 9, 13, 17, 21, 25, 29},
                                         {2, 6, 10, 14, 18, 22, 26, 30}, {3, 7, 11, 15, 19, 23, 27, 31},
                                         {0, 4, 8, 12, 16, 20, 24, 28},  {1, 5, 9, 13, 17, 21, 25, 29},
                                         {2, 6, 10, 14, 18, 22, 26, 30}, {3, 7, 11, 15, 19, 23, 27, 31}};

std::uint32_t pair_of(std::uint16_t low, std::uint16_t high) { return low | std::uint32_t{high} << 16; }

class IsaSm80 : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    DeviceProperties device;
    if (stream_ == nullptr || !device_properties(0, device).ok()) return;
    if (device.compute_capability < 80) GTEST_SKIP() << device.name << " is older than sm_80";
  }

  /// Of one block.
  Words run(Sm80Probe probe, const Words& in) {
    const DeviceWords device_in(in, stream_);
    const DeviceWords device_out(Words(in.size() / kSm80Inputs * kSm80Outputs, 0), stream_);
    const auto blocks = static_cast<unsigned>(in.size() / kSm80Inputs / kLanes);
    const Status status = launch_sm80_probe(probe, blocks, {device_in.data(), device_out.data()}, stream_);
    EXPECT_TRUE(status.ok()) << status.message();
    return device_out.get();
  }
};

Words random_inputs(unsigned seed, std::size_t blocks = 1) {
  std::mt19937 random(seed);
  Words words(blocks * kLanes * kSm80Inputs);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random());
  return words;
}

// ---- ldmatrix

/// Element (row, column) of a matrix, of which lane 8 * matrix + row has the row.
std::uint16_t element(const Words& in, std::size_t matrix, std::size_t row, std::size_t column) {
  const std::uint32_t word = in[(matrix * 8 + row) * kSm80Inputs + column / 2];
  return static_cast<std::uint16_t>(column % 2 == 0 ? word : word >> 16);
}

TEST_F(IsaSm80, Ldmatrix) {
  const Words in = random_inputs(1);
  const Words out = run(Sm80Probe::ldmatrix_x4, in);
  const Words transposed = run(Sm80Probe::ldmatrix_x4_trans, in);
  for (std::size_t matrix = 0; matrix < 4; ++matrix) {
    for (std::size_t row = 0; row < 8; ++row) {
      for (std::size_t pair = 0; pair < 4; ++pair) {
        const std::size_t at = kOwner[row][pair] * kSm80Outputs + matrix;
        const std::size_t c = 2 * pair;
        EXPECT_EQ(out[at], pair_of(element(in, matrix, row, c), element(in, matrix, row, c + 1)));
        EXPECT_EQ(transposed[at], pair_of(element(in, matrix, c, row), element(in, matrix, c + 1, row)));
      }
    }
  }
}

// ---- mma

struct Product {
  float a[16][16] = {};
  float b[16][8] = {};
  float c[16][8] = {};
};
struct Matrix {
  float at[16][8];
};

template <class T>
Words fragments(const Product& p) {
  Words in(kLanes * kSm80Inputs, 0xFFFF'FFFF);
  const auto word = [](float low, float high) { return pair_of(T(low).bits, T(high).bits); };
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 16; column += 2) {
      const std::size_t owner = kOwner[row % 8][column % 8 / 2];
      in[owner * kSm80Inputs + kRegisterOfA[row / 8][column / 8]] = word(p.a[row][column], p.a[row][column + 1]);
    }
    for (std::size_t column = 0; column < 8; column += 2) {
      std::uint32_t* c = &in[kOwner[row % 8][column / 2] * kSm80Inputs + 6 + row / 8 * 2];
      for (std::size_t i = 0; i < 2; ++i) c[i] = bits(p.c[row][column + i]);
    }
  }
  for (std::size_t pair = 0; pair < 8; ++pair) {
    for (std::size_t column = 0; column < 8; ++column) {
      in[kOwnerOfB[pair][column] * kSm80Inputs + 4 + pair / 4] = word(p.b[2 * pair][column], p.b[2 * pair + 1][column]);
    }
  }
  return in;
}

template <class T>
constexpr Sm80Probe kMma = std::is_same_v<T, float16> ? Sm80Probe::mma_f16 : Sm80Probe::mma_bf16;

template <class T>
class Mma : public IsaSm80 {
 protected:
  Matrix multiply(const Product& p) {
    const Words out = run(kMma<T>, fragments<T>(p));
    Matrix d{};
    for (std::size_t row = 0; row < 16; ++row) {
      for (std::size_t column = 0; column < 8; ++column) {
        d.at[row][column] = number(out[kOwner[row % 8][column / 2] * kSm80Outputs + row / 8 * 2 + column % 2]);
      }
    }
    return d;
  }
};
using Halves = testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(Mma, Halves);

/// Whole numbers, all different enough for every misplaced element to change the result, and small enough to be exact.
TYPED_TEST(Mma, OfWholeNumbersIsExact) {
  std::mt19937 random(2);
  std::uniform_int_distribution<int> digit(-99, 99);
  Product p;
  const auto fill = [&](auto& matrix) {
    for (auto& row : matrix) {
      for (float& x : row) x = static_cast<float>(digit(random));
    }
  };
  fill(p.a);
  fill(p.b);
  fill(p.c);
  const Matrix d = this->multiply(p);
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      float exact = p.c[row][column];
      for (std::size_t k = 0; k < 16; ++k) exact += p.a[row][k] * p.b[k][column];
      EXPECT_EQ(d.at[row][column], exact) << row << ", " << column;
    }
  }
}

/// Numbers of many magnitudes, subnormal halves among them: an error of at most 2^-20 of all that is added up.
TYPED_TEST(Mma, OfAnyNumbersIsClose) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-18, 0);
  for (int repeat = 0; repeat < 20; ++repeat) {
    Product p;
    const auto fill = [&](auto& matrix) {
      for (auto& row : matrix) {
        for (float& x : row) x = static_cast<float>(TypeParam(std::ldexp(normal(random), exponent(random))));
      }
    };
    fill(p.a);
    fill(p.b);
    fill(p.c);
    const Matrix d = this->multiply(p);
    for (std::size_t row = 0; row < 16; ++row) {
      for (std::size_t column = 0; column < 8; ++column) {
        auto exact = static_cast<double>(p.c[row][column]);
        double all = std::abs(exact);
        for (std::size_t k = 0; k < 16; ++k) {
          const double product = static_cast<double>(p.a[row][k]) * static_cast<double>(p.b[k][column]);
          exact += product;
          all += std::abs(product);
        }
        EXPECT_LE(std::abs(static_cast<double>(d.at[row][column]) - exact), all * 0x1p-20) << row << ", " << column;
      }
    }
  }
}

/// One element of the result: c + a b, the rest zeros.
TYPED_TEST(Mma, TruncatesAndKeepsWhatIsNotFinite) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const auto sum = [&](float c, float a, float b) {
    Product p;
    p.c[5][6] = c;
    p.a[5][9] = a;
    p.b[9][6] = b;
    return this->multiply(p).at[5][6];
  };
  EXPECT_EQ(sum(1, 0x1.8p-12F, 0x1p-12F), 1);  // to the nearest it would be 1 + 2^-23
  EXPECT_EQ(sum(-1, -0x1.8p-12F, 0x1p-12F), -1);
  EXPECT_EQ(sum(1, 0x1p-11F, 0x1p-12F), 1 + 0x1p-23F);
  EXPECT_EQ(sum(0, 0x1p-14F, 0x1p-10F), 0x1p-24F);
  EXPECT_EQ(sum(0x1p-149F, 0, 0), 0x1p-149F);
  EXPECT_EQ(sum(0, kInf, 2), kInf);
  EXPECT_EQ(sum(0, -kInf, 2), -kInf);
  EXPECT_EQ(sum(-kInf, 3, 2), -kInf);
  EXPECT_TRUE(std::isnan(sum(0, kInf, 0)));
  EXPECT_TRUE(std::isnan(sum(-kInf, kInf, 1)));
  EXPECT_TRUE(std::isnan(sum(0, std::nanf(""), 1)));
  EXPECT_TRUE(std::isnan(sum(std::nanf(""), 1, 1)));
}

using MmaBf16 = Mma<bfloat16>;
TEST_F(MmaBf16, OverflowsToInfinity) {
  Product p;
  p.c[0][0] = std::numeric_limits<float>::max();
  p.a[0][0] = p.b[0][0] = 0x1p63F;
  EXPECT_EQ(multiply(p).at[0][0], std::numeric_limits<float>::infinity());
}

// ---- cp.async

TEST_F(IsaSm80, AsynchronousCopies) {
  const Words in = random_inputs(4, 3);
  const Words copied = run(Sm80Probe::cp_async, in);
  const Words or_zero = run(Sm80Probe::cp_async_or_zero, in);
  const Words groups = run(Sm80Probe::cp_async_groups, in);
  for (std::size_t thread = 0; thread < 3 * kLanes; ++thread) {
    const std::uint32_t* own = &in[thread * kSm80Inputs];
    const std::uint32_t* other = &in[(thread ^ 7) * kSm80Inputs];
    for (std::size_t word = 0; word < 4; ++word) {
      const std::size_t at = thread * kSm80Outputs + word;
      EXPECT_EQ(copied[at], other[word]) << "thread " << thread;
      EXPECT_EQ(or_zero[at], other[4] % 2 != 0 ? other[word] : 0) << "thread " << thread;
      EXPECT_EQ(groups[at], own[word] + own[4 + word]) << "thread " << thread;
    }
  }
}

}  // namespace
}  // namespace sorot::machine
