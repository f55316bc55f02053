#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "cuda/emulator/control.h"
#include "cuda/machine/runtime.h"

namespace sorot::emulator {

/// Device memory of a test, filled from and read back into a vector.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : count_(values.size()) {
    EXPECT_TRUE(machine::allocate(count_ * sizeof(T), memory_).ok());
    set(values);
  }
  explicit DeviceArray(std::size_t count) : count_(count) {
    EXPECT_TRUE(machine::allocate(count * sizeof(T), memory_).ok());
  }
  ~DeviceArray() { EXPECT_TRUE(machine::release(memory_).ok()); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return static_cast<T*>(memory_); }
  std::size_t bytes() const { return count_ * sizeof(T); }

  void set(const std::vector<T>& values) {
    const Status s = machine::copy(memory_, values.data(), bytes(), machine::Copy::host_to_device, nullptr);
    EXPECT_TRUE(s.ok()) << s.message();
  }
  std::vector<T> get() const {
    std::vector<T> values(count_);
    const Status s = machine::copy(values.data(), memory_, bytes(), machine::Copy::device_to_host, nullptr);
    EXPECT_TRUE(s.ok()) << s.message();
    return values;
  }

 private:
  void* memory_ = nullptr;
  std::size_t count_ = 0;
};

/// Settings for every order of threads a kernel is run in: forward, reverse, two random ones.
inline std::vector<Settings> all_orders(bool race = false) {
  std::vector<Settings> all(4);
  all[1].order = Order::reverse;
  all[2].order = all[3].order = Order::random;
  all[2].seed = 1;
  all[3].seed = 2;
  for (Settings& settings : all) settings.race = race;
  return all;
}

/// "file.cpp:12", where 12 is the one line of that source that ends with `// BUG: <name>`.
inline std::string bug_line(const char* source, const std::string& name) {
  std::ifstream file(std::string(SOROT_EMULATOR_TESTS "/") + machine::Site{source, 0}.file_name());
  std::string line;
  std::string found = "no line is marked BUG: " + name;
  const std::string mark = "// BUG: " + name;
  for (int number = 1; std::getline(file, line); ++number) {
    const bool ends = line.size() >= mark.size() && line.compare(line.size() - mark.size(), mark.size(), mark) == 0;
    if (ends) found = std::string(machine::Site{source, 0}.file_name()) + ":" + std::to_string(number);
  }
  return found;
}

class EmulatedDevice : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(machine::create_stream(stream_).ok()); }
  void TearDown() override { EXPECT_TRUE(machine::destroy_stream(stream_).ok()); }

  /// Launches a kernel and expects a report that has all these parts.
  template <class Params>
  void expect_report(void (*kernel)(Params), const Params& params, unsigned threads, std::size_t shared_bytes,
                     const std::vector<std::string>& parts, unsigned blocks = 1) {
    const Status status =
        machine::launch({"kernel_with_a_bug", {blocks}, {threads}, shared_bytes, stream_}, kernel, params);
    ASSERT_EQ(status.code(), StatusCode::kDeviceError) << "the emulator saw nothing";
    EXPECT_NE(status.device_error(), 0);
    EXPECT_THAT(last_report(), testing::StartsWith(std::string(status.message()).substr(0, 40)));
    for (const std::string& part : parts) EXPECT_THAT(last_report(), testing::HasSubstr(part));
  }

  machine::Stream stream_ = nullptr;
};

}  // namespace sorot::emulator
