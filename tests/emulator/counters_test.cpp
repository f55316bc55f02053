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
