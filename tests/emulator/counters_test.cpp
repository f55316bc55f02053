#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "cuda/machine/isa.cuh"
#include "tests/emulator/device_fixture.h"

/// Memory traffic in numbers that anybody can work out by hand.
namespace sorot::emulator {
namespace {

struct Params {
  const char* memory;
  int stride;  ///< bytes from lane to lane
  int offset;
  unsigned lanes;
};

template <class T>
__global__ void reads_global(const Params p) {
  const unsigned t = machine::thread_index().x;
  if (t % 32 >= p.lanes) return;
  const char* address = p.memory + p.offset + static_cast<int>(t) * p.stride;
  static_cast<void>(machine::load_global(reinterpret_cast<const T*>(address)));
}

struct Bytes {
  char byte[32 * 1024];
};
template <class T>
__global__ void writes_shared(const Params p) {
  Bytes& s = machine::shared<Bytes>();
  const unsigned t = machine::thread_index().x;
  machine::store_shared(reinterpret_cast<T*>(s.byte + p.offset + static_cast<int>(t) * p.stride), T{});
}

class Counting : public EmulatedDevice {
 protected:
  void SetUp() override {
    EmulatedDevice::SetUp();
    settings_.count = true;
    apply(settings_);
    clear_counts();
  }
  void TearDown() override {
    apply({});
    EmulatedDevice::TearDown();
  }

  AccessCount count(void (*kernel)(Params), int stride, int offset = 0, unsigned lanes = 32, unsigned warps = 1) {
    clear_counts();
    const Status status = machine::launch({"counted", {1}, {32 * warps}, sizeof(Bytes), stream_}, kernel,
                                          {memory_.data(), stride, offset, lanes});
    EXPECT_TRUE(status.ok()) << last_report();
    EXPECT_EQ(counts().size(), 1U);
    return counts().front();
  }

  Settings settings_;
  DeviceArray<char> memory_{32 * 1024};
};

void expect_count(const AccessCount& c, std::uint64_t requests, std::uint64_t bytes, std::uint64_t transactions,
                  std::uint64_t ideal) {
  EXPECT_EQ(c.requests, requests);
  EXPECT_EQ(c.bytes, bytes);
  EXPECT_EQ(c.transactions, transactions);
  EXPECT_EQ(c.ideal_transactions, ideal);
}

using machine::Float2;
using machine::Float4;

TEST_F(Counting, SectorsOfGlobalMemory) {
  expect_count(count(reads_global<float>, 4), 1, 128, 4, 4);
  expect_count(count(reads_global<Float4>, 16), 1, 512, 16, 16);
  expect_count(count(reads_global<Float4>, 16, 0, 32, 4), 4, 2048, 64, 64);
  expect_count(count(reads_global<float>, 32), 1, 128, 32, 4);    // one element of every sector
  expect_count(count(reads_global<float>, 4, 16), 1, 128, 5, 4);  // not aligned to a sector
  expect_count(count(reads_global<float>, 0), 1, 128, 1, 1);      // all the same element
  expect_count(count(reads_global<char>, 1), 1, 32, 1, 1);
  expect_count(count(reads_global<std::uint16_t>, 2), 1, 64, 2, 2);
  expect_count(count(reads_global<float>, 4, 0, 8), 1, 32, 1, 1);  // eight lanes only
  EXPECT_EQ(counts().front().instruction, "load_global");
  EXPECT_EQ(counts().front().kernel, "counted");
  EXPECT_EQ(counts().front().file, "counters_test.cpp");
}

TEST_F(Counting, WavefrontsOfSharedMemory) {
  expect_count(count(writes_shared<float>, 4), 1, 128, 1, 1);
  expect_count(count(writes_shared<float>, 128), 1, 128, 32, 1);      // all in one bank
  expect_count(count(writes_shared<float>, 132), 1, 128, 1, 1);       // a padded column
  expect_count(count(writes_shared<float>, 8), 1, 128, 2, 1);         // every second bank
  expect_count(count(writes_shared<float>, 0), 1, 128, 1, 1);         // one word for all
  expect_count(count(writes_shared<std::uint16_t>, 2), 1, 64, 1, 1);  // two lanes a word
  expect_count(count(writes_shared<Float2>, 8), 1, 256, 2, 2);
  expect_count(count(writes_shared<Float4>, 16), 1, 512, 4, 4);
  expect_count(count(writes_shared<Float4>, 32), 1, 512, 8, 4);   // 8 lanes on 4 groups of banks
  expect_count(count(writes_shared<Float4>, 272), 1, 512, 4, 4);  // rows of 68 floats
  expect_count(count(writes_shared<Float4>, 256), 1, 512, 32, 4);
}

/// Rows of 128 bytes; `offset` is what is XORed into a row's 16-byte chunk, times the row.
__global__ void reads_matrices(const Params p) {
  Bytes& s = machine::shared<Bytes>();
  const int row = static_cast<int>(machine::thread_index().x) % 32;
  const int chunk = row % 8 * p.offset;
  std::uint32_t r[4];
  machine::ldmatrix_x4(machine::shared_address(s.byte) + static_cast<unsigned>(row * p.stride + chunk * 16), r);
}
TEST_F(Counting, WavefrontsOfMatrices) {
  expect_count(count(reads_matrices, 128), 1, 512, 32, 4);           // every row begins in the same bank
  expect_count(count(reads_matrices, 128, 1), 1, 512, 4, 4);         // swizzled
  expect_count(count(reads_matrices, 144), 1, 512, 4, 4);            // padded
  expect_count(count(reads_matrices, 64), 1, 512, 16, 4);            // 4 rows on one group of banks
  expect_count(count(reads_matrices, 16, 0, 32, 2), 2, 1024, 8, 8);  // dense, two warps
  EXPECT_EQ(counts().front().instruction, "ldmatrix_x4");
}

__global__ void copies_rows(const Params p) {
  Bytes& s = machine::shared<Bytes>();
  const int t = static_cast<int>(machine::thread_index().x);
  for (unsigned round = 0; round < 2; ++round) {
    const bool valid = static_cast<unsigned>(t) < p.lanes || round == 1;
    machine::cp_async_or_zero(machine::shared_address(s.byte + t * 16), p.memory + t * p.stride, valid);
    machine::cp_async_commit();
    machine::cp_async_wait<0>();
  }
}
TEST_F(Counting, AsynchronousCopies) {
  for (const unsigned lanes : {32U, 8U, 0U}) {
    clear_counts();
    ASSERT_TRUE(
        machine::launch({"copied", {1}, {32}, sizeof(Bytes), stream_}, copies_rows, {memory_.data(), 48, 0, lanes})
            .ok());
    ASSERT_EQ(counts().size(), 2U);
    EXPECT_EQ(counts()[0].instruction, "cp_async");
    EXPECT_EQ(counts()[1].instruction, "cp_async shared");
    // 16 of every 48 bytes: a sector each. Two rounds, of which the first may read less.
    const std::uint64_t all = 32 + lanes;
    expect_count(counts()[0], lanes == 0 ? 1 : 2, all * 16, all, all / 2);
    expect_count(counts()[1], 2, 1024, 8, 8);
  }
}

__global__ void multiplies(const Params p) {
  float d[4] = {};
  const std::uint32_t a[4] = {};
  for (int n = 0; n < p.stride; ++n) machine::mma_m16n8k16<bfloat16>(d, a, 0, 0);
}
TEST_F(Counting, MatrixProducts) {
  const AccessCount c = count(multiplies, 7, 0, 32, 3);
  expect_count(c, 21, 0, 0, 0);
  EXPECT_EQ(c.instruction, "mma_m16n8k16");
}

TEST_F(Counting, SwitchesBetweenThreads) {
  count(reads_global<float>, 4);
  EXPECT_EQ(switches(), 33U);  // to every thread once, and back
  count(multiplies, 1);
  const std::uint64_t once = switches();
  count(multiplies, 11);
  EXPECT_GE(switches(), once + 10 * 31);
  EXPECT_LE(switches(), once + 10 * 33);
  clear_counts();
  EXPECT_EQ(switches(), 0U);
}

TEST_F(Counting, ReadsOfEveryByte) {
  count(reads_global<float>, 4);
  count(reads_global<float>, 0, 8);
  clear_counts();
  ASSERT_TRUE(machine::launch({"k", {3}, {32}, 0, stream_}, reads_global<float>, {memory_.data(), 8, 4, 2}).ok());
  EXPECT_EQ(reads_of(memory_.data(), 20),
            (std::vector<std::uint32_t>{0, 0, 0, 0, 3, 3, 3, 3, 0, 0, 0, 0, 3, 3, 3, 3, 0, 0, 0, 0}));
}

TEST_F(Counting, NothingIsCountedUnlessAskedFor) {
  apply({});
  ASSERT_TRUE(machine::launch({"k", {1}, {32}, 0, stream_}, reads_global<float>, {memory_.data(), 4, 0, 32}).ok());
  EXPECT_TRUE(counts().empty());
  EXPECT_EQ(reads_of(memory_.data(), 1), std::vector<std::uint32_t>{0});
}

}  // namespace
}  // namespace sorot::emulator
