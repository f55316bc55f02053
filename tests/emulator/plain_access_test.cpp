#include <gtest/gtest.h>

#include <vector>

#include "tests/emulator/device_fixture.h"
#include "tests/emulator/plain_access_kernels.h"

/// Race mode also sees accesses that went past the wrappers, where kernels are compiled to tell.
namespace sorot::emulator {
namespace {

class PlainAccesses : public EmulatedDevice {
 protected:
  static std::string line(const std::string& name) { return bug_line("plain_access_kernels.cu", name); }

  void expect_in_every_order(void (*kernel)(PlainParams), const std::vector<std::string>& parts) {
    for (const Settings& settings : all_orders(true)) {
      const Scoped scoped(settings);
      expect_report(kernel, PlainParams{data_.data()}, 64, 256, parts);
    }
  }

  DeviceArray<int> data_{std::vector<int>(64, 7)};
};

TEST_F(PlainAccesses, AStoreWithoutABarrier) {
  expect_in_every_order(stores_plainly, {"race", "plain store", line("plain store"), line("load after it")});
}
TEST_F(PlainAccesses, ALoadWithoutABarrier) {
  expect_in_every_order(loads_plainly, {"race", "plain load", line("plain load"), line("store before it")});
}
TEST_F(PlainAccesses, AStoreToGlobalMemory) {
  expect_in_every_order(stores_plainly_to_global, {"race", line("plain global store"), line("atomic after it")});
}
TEST_F(PlainAccesses, AStoreBehindSharedMemory) {
  expect_in_every_order(stores_plainly_too_far, {line("plain store too far"), "4 bytes at shared memory + 256"});
}

TEST_F(PlainAccesses, WhatIsOrderedIsNoRace) {
  for (const Settings& settings : all_orders(true)) {
    const Scoped scoped(settings);
    data_.set(std::vector<int>(64, 7));
    ASSERT_TRUE(machine::launch({"k", {1}, {64}, 256, stream_}, exchanges_plainly, {data_.data()}).ok())
        << last_report();
    EXPECT_EQ(data_.get()[5], 7 + 64);
    EXPECT_EQ(data_.get()[6], 7);
  }
}

}  // namespace
}  // namespace sorot::emulator
