#include <gtest/gtest.h>

#include <vector>

#include "cuda/machine/isa.cuh"
#include "tests/emulator/device_fixture.h"

/// Streams, events, graphs, and the record of launches.
namespace sorot::emulator {
namespace {

using testing::HasSubstr;

struct Add {
  int* sum;
  const int* addend;
  int times;
};
__global__ void adds(const Add p) {
  if (machine::thread_index().x != 0) return;
  machine::store_global(p.sum, machine::load_global(p.sum) + p.times * machine::load_global(p.addend));
}

class Streams : public EmulatedDevice {
 protected:
  Status add(int times) {
    return machine::launch({"adds", {1}, {32}, 0, stream_}, adds, {sum_.data(), addend_.data(), times});
  }
  int sum() const { return sum_.get()[0]; }

  DeviceArray<int> sum_{std::vector<int>{0}};
  DeviceArray<int> addend_{std::vector<int>{1}};
};

TEST_F(Streams, AGraphRunsWhenItIsReplayedAndReadsMemoryThen) {
  machine::Graph graph = nullptr;
  ASSERT_TRUE(machine::begin_capture(stream_).ok());
  ASSERT_TRUE(add(1).ok());
  ASSERT_TRUE(add(10).ok());
  ASSERT_TRUE(machine::end_capture(stream_, graph).ok());
  EXPECT_EQ(sum(), 0) << "a capture runs nothing";
  ASSERT_TRUE(machine::replay(graph, stream_).ok());
  EXPECT_EQ(sum(), 11);
  addend_.set({100});
  ASSERT_TRUE(machine::replay(graph, stream_).ok());
  EXPECT_EQ(sum(), 1111);
  EXPECT_TRUE(machine::destroy_graph(graph).ok());
  EXPECT_THAT(machine::replay(graph, stream_).message(), HasSubstr("no live graph"));
}

TEST_F(Streams, CopiesAndFillsAreCapturedToo) {
  machine::Graph graph = nullptr;
  int host = 7;
  ASSERT_TRUE(machine::begin_capture(stream_).ok());
  ASSERT_TRUE(machine::fill(sum_.data(), 0, 4, stream_).ok());
  ASSERT_TRUE(machine::copy(addend_.data(), &host, 4, machine::Copy::host_to_device, stream_).ok());
  ASSERT_TRUE(add(1).ok());
  ASSERT_TRUE(machine::end_capture(stream_, graph).ok());
  for (int repeat = 0; repeat < 2; ++repeat) {
    ASSERT_TRUE(machine::replay(graph, stream_).ok());
    EXPECT_EQ(sum(), 7);
  }
  EXPECT_TRUE(machine::destroy_graph(graph).ok());
}

TEST_F(Streams, WhatCudaForbidsDuringACapture) {
  machine::Graph graph = nullptr;
  void* memory = nullptr;
  ASSERT_TRUE(machine::begin_capture(stream_).ok());
  EXPECT_THAT(machine::begin_capture(stream_).message(), HasSubstr("captures already"));
  EXPECT_THAT(machine::allocate(4, memory).message(), HasSubstr("while a stream captures"));
  EXPECT_THAT(machine::synchronize(stream_).message(), HasSubstr("cannot be waited for"));
  EXPECT_THAT(machine::fill(sum_.data(), 0, 4, nullptr).message(), HasSubstr("legacy default stream"));
  ASSERT_TRUE(machine::end_capture(stream_, graph).ok());
  EXPECT_THAT(machine::end_capture(stream_, graph).message(), HasSubstr("does not capture"));
  EXPECT_THAT(machine::begin_capture(nullptr).message(), HasSubstr("cannot capture"));
  EXPECT_TRUE(machine::destroy_graph(graph).ok());
}

TEST_F(Streams, AHandleThatIsNoneIsRefused) {
  machine::Stream gone = nullptr;
  ASSERT_TRUE(machine::create_stream(gone).ok());
  ASSERT_TRUE(machine::destroy_stream(gone).ok());
  EXPECT_THAT(machine::destroy_stream(gone).message(), HasSubstr("no live stream"));
  EXPECT_THAT(machine::fill(sum_.data(), 0, 4, gone).message(), HasSubstr("no live stream"));
  EXPECT_EQ(machine::synchronize(gone).device_error(), 400);
}

TEST_F(Streams, EventsMeasureTime) {
  machine::Event start = nullptr;
  machine::Event stop = nullptr;
  float milliseconds = -1;
  ASSERT_TRUE(machine::create_event(start).ok());
  ASSERT_TRUE(machine::create_event(stop).ok());
  EXPECT_THAT(machine::elapsed_milliseconds(start, stop, milliseconds).message(), HasSubstr("never recorded"));
  ASSERT_TRUE(machine::record(start, stream_).ok());
  ASSERT_TRUE(add(1).ok());
  ASSERT_TRUE(machine::record(stop, stream_).ok());
  ASSERT_TRUE(machine::elapsed_milliseconds(start, stop, milliseconds).ok());
  EXPECT_GE(milliseconds, 0);
  EXPECT_TRUE(machine::destroy_event(start).ok());
  EXPECT_TRUE(machine::destroy_event(stop).ok());
}

TEST_F(Streams, EveryLaunchThatRanIsOnRecord) {
  clear_launches();
  ASSERT_TRUE(add(1).ok());
  ASSERT_FALSE(machine::launch({"adds", {0}, {32}, 0, stream_}, adds, {}).ok());
  ASSERT_TRUE(machine::launch({"other", {2, 3}, {64}, 128, nullptr}, adds, {sum_.data(), addend_.data(), 1}).ok());
  const std::vector<LaunchRecord> records = launches();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].kernel, "adds");
  EXPECT_EQ(records[0].stream, stream_);
  EXPECT_EQ(records[1].kernel, "other");
  EXPECT_EQ(records[1].stream, nullptr);
  EXPECT_EQ(records[1].grid[1], 3U);
  EXPECT_EQ(records[1].block[0], 64U);
  EXPECT_EQ(records[1].shared_bytes, 128U);
  clear_launches();
  EXPECT_TRUE(launches().empty());
}

}  // namespace
}  // namespace sorot::emulator
