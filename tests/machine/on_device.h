#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "cuda/machine/runtime.h"

/// What tests of the machine need of it besides kernels.
namespace sorot::machine {

using Words = std::vector<std::uint32_t>;

inline std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
inline float number(std::uint32_t word) { return std::bit_cast<float>(word); }

/// Device memory for the words of a test.
class DeviceWords {
 public:
  DeviceWords(const Words& words, Stream stream) : words_(words.size()), stream_(stream) {
    EXPECT_TRUE(allocate(words.size() * 4, memory_).ok());
    EXPECT_TRUE(copy(memory_, words.data(), words.size() * 4, Copy::host_to_device, stream).ok());
  }
  ~DeviceWords() { EXPECT_TRUE(release(memory_).ok()); }
  DeviceWords(const DeviceWords&) = delete;
  DeviceWords& operator=(const DeviceWords&) = delete;
  std::uint32_t* data() const { return static_cast<std::uint32_t*>(memory_); }
  Words get() const {
    Words words(words_);
    EXPECT_TRUE(copy(words.data(), memory_, words_ * 4, Copy::device_to_host, stream_).ok());
    EXPECT_TRUE(synchronize(stream_).ok());
    return words;
  }

 private:
  void* memory_ = nullptr;
  std::size_t words_;
  Stream stream_;
};

/// Skipped where there is no device: no GPU, and no emulator either.
class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (!device_count(count).ok() || count == 0) GTEST_SKIP() << "no CUDA device on this machine";
    ASSERT_TRUE(create_stream(stream_).ok());
  }
  void TearDown() override {
    if (stream_ != nullptr) {
      EXPECT_TRUE(destroy_stream(stream_).ok());
    }
  }

  Stream stream_ = nullptr;
};

}  // namespace sorot::machine
