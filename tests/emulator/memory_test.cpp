#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "tests/emulator/device_fixture.h"

/// Device memory and the profiles of devices.
namespace sorot::emulator {
namespace {

using testing::HasSubstr;

TEST(DeviceMemory, FreshMemoryIsNaNAndAligned) {
  for (const std::size_t count : {1U, 63U, 64U, 65U, 5000U}) {
    const DeviceArray<std::uint8_t> data(count);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data.data()) % 256, 0U);
    const std::vector<std::uint8_t> bytes = data.get();
    EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t b) { return b == 0xFF; }));
  }
}

TEST(DeviceMemory, NoBytesIsNull) {
  void* memory = &memory;
  EXPECT_TRUE(machine::allocate(0, memory).ok());
  EXPECT_EQ(memory, nullptr);
  EXPECT_TRUE(machine::release(nullptr).ok());
}

TEST(DeviceMemory, AllocationsAreCountedAndReleasedOnce) {
  const MemoryUse before = memory_use();
  void* memory[3] = {};
  for (void*& m : memory) ASSERT_TRUE(machine::allocate(1000, m).ok());
  EXPECT_EQ(memory_use().allocations, before.allocations + 3);
  EXPECT_EQ(memory_use().bytes, before.bytes + 3000);
  EXPECT_TRUE(machine::release(memory[1]).ok());
  EXPECT_THAT(machine::release(memory[1]).message(), HasSubstr("expected the start of a live allocation"));
  EXPECT_THAT(machine::release(static_cast<char*>(memory[0]) + 256).message(), HasSubstr("byte 256 of allocation"));
  int host = 0;
  EXPECT_THAT(machine::release(&host).message(), HasSubstr("not device memory"));
  void* again = nullptr;
  ASSERT_TRUE(machine::allocate(1000, again).ok());
  EXPECT_EQ(again, memory[1]) << "a gap is used again";
  for (void* m : {memory[0], again, memory[2]}) EXPECT_TRUE(machine::release(m).ok());
  EXPECT_EQ(memory_use().allocations, before.allocations);
}

TEST(DeviceMemory, MoreThanThereIsIsRefused) {
  void* memory = nullptr;
  const Status status = machine::allocate(std::size_t{1} << 60, memory);
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_THAT(status.message(), HasSubstr("1152921504606846976 bytes"));
}

TEST(Profiles, AreTheDevicesTheyName) {
  int count = 0;
  ASSERT_TRUE(machine::device_count(count).ok());
  EXPECT_EQ(count, 1);
  EXPECT_TRUE(machine::is_emulated());
  const int shared_kilobytes[] = {64, 163, 99, 227, 227, 99};
  for (std::size_t n = 0; n < std::size(kProfiles); ++n) {
    Settings settings;
    settings.profile = kProfiles[n];
    const Scoped scoped(settings);
    machine::DeviceProperties properties;
    ASSERT_TRUE(machine::device_properties(0, properties).ok());
    EXPECT_EQ(properties.compute_capability, kProfiles[n]);
    EXPECT_EQ(properties.shared_bytes_per_block, shared_kilobytes[n] * 1024);
    EXPECT_GE(properties.shared_bytes_per_multiprocessor, properties.shared_bytes_per_block);
    EXPECT_GT(properties.multiprocessors, 0);
    EXPECT_THAT(properties.name, HasSubstr("sm_" + std::to_string(kProfiles[n])));
  }
  machine::DeviceProperties properties;
  EXPECT_THAT(machine::device_properties(1, properties).message(), HasSubstr("ordinal is 1"));
  EXPECT_FALSE(machine::CurrentDevice(1).status().ok());
  EXPECT_TRUE(machine::CurrentDevice(0).status().ok());
}

TEST(Profiles, AnUnknownOneIsRefused) {
  Settings settings;
  settings.profile = 89;
  try {
    apply(settings);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "profile is 89, expected one of 75, 80, 86, 90, 100, 120");
  }
  EXPECT_EQ(sorot::emulator::settings().profile, 90);
}

}  // namespace
}  // namespace sorot::emulator
