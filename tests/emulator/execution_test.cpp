#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "cuda/machine/isa.cuh"
#include "tests/emulator/device_fixture.h"

/// Kernels that are right: they pass in every order, in race mode, and on both kinds of fibers.
namespace sorot::emulator {
namespace {

struct Params {
  int* data = nullptr;
  int count = 0;
};

class Execution : public EmulatedDevice {
 protected:
  /// Runs the kernel in every order, with and without race mode, on both kinds of fibers.
  void expect_everywhere(void (*kernel)(Params), const machine::LaunchConfig& config, const std::vector<int>& before,
                         const std::vector<int>& after) {
    DeviceArray<int> data(before);
    for (const bool race : {false, true}) {
      for (const bool portable : {false, true}) {
        for (Settings settings : all_orders(race)) {
          settings.portable_fibers = portable;
          const Scoped scoped(settings);
          data.set(before);
          const Status status = machine::launch(config, kernel, {data.data(), static_cast<int>(before.size())});
          ASSERT_TRUE(status.ok()) << last_report();
          EXPECT_EQ(data.get(), after);
        }
      }
    }
  }
};

std::vector<int> counting(std::size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

struct Words {
  int word[128];
};

__global__ void reverses(const Params p) {
  Words& s = machine::shared<Words>();
  const unsigned t = machine::thread_index().x;
  int* block = p.data + machine::block_index().x * machine::block_size().x;
  machine::store_shared(&s.word[t], machine::load_global(block + t));
  machine::sync_block();
  machine::store_global(block + t, machine::load_shared(&s.word[machine::block_size().x - 1 - t]));
}
TEST_F(Execution, BlocksReverseTheirNumbers) {
  std::vector<int> expected = counting(5 * 96);
  for (auto block = expected.begin(); block != expected.end(); block += 96) std::reverse(block, block + 96);
  expect_everywhere(reverses, {"reverses", {5}, {96}, sizeof(Words), stream_}, counting(5 * 96), expected);
}

__global__ void transposes_in_a_warp(const Params p) {
  Words& s = machine::shared<Words>();
  const unsigned t = machine::thread_index().x;
  for (int round = 0; round < 3; ++round) {
    machine::store_shared(&s.word[t], machine::load_global(p.data + t));
    machine::sync_warp();
    machine::store_global(p.data + t, machine::load_shared(&s.word[t ^ 31]));
    machine::sync_warp();
  }
}
TEST_F(Execution, AWarpBarrierOrdersTheLanesOfItsWarp) {
  std::vector<int> expected = counting(64);
  std::reverse(expected.begin(), expected.begin() + 32);
  std::reverse(expected.begin() + 32, expected.end());
  expect_everywhere(transposes_in_a_warp, {"transposes", {1}, {64}, sizeof(Words), stream_}, counting(64), expected);
}

/// Every thread has a byte of its own: no race, though four of them share a word.
__global__ void writes_bytes(const Params p) {
  Words& s = machine::shared<Words>();
  const unsigned t = machine::thread_index().x;
  auto* bytes = reinterpret_cast<std::uint8_t*>(s.word);
  machine::store_shared(bytes + t, static_cast<std::uint8_t>(t));
  machine::sync_block();
  if (t < 16) machine::store_global(p.data + t, machine::load_shared(&s.word[t]));
}
TEST_F(Execution, NeighbouringBytesOfOneWordAreNoRace) {
  std::vector<int> expected;
  for (int t = 0; t < 64; t += 4) expected.push_back(t | (t + 1) << 8 | (t + 2) << 16 | (t + 3) << 24);
  expect_everywhere(writes_bytes, {"bytes", {1}, {64}, sizeof(Words), stream_}, std::vector<int>(16, 0), expected);
}

/// Half of a warp meets in a barrier of its own.
__global__ void half_warps_exchange(const Params p) {
  Words& s = machine::shared<Words>();
  const unsigned t = machine::thread_index().x;
  const unsigned mask = t < 16 ? 0x0000'FFFF : 0xFFFF'0000;
  machine::store_shared(&s.word[t], machine::load_global(p.data + t));
  machine::sync_warp(mask);
  machine::store_global(p.data + t, machine::load_shared(&s.word[t ^ 15]));
}
TEST_F(Execution, HalfWarpsMeetByThemselves) {
  std::vector<int> expected = counting(32);
  std::reverse(expected.begin(), expected.begin() + 16);
  std::reverse(expected.begin() + 16, expected.end());
  expect_everywhere(half_warps_exchange, {"exchange", {1}, {32}, sizeof(Words), stream_}, counting(32), expected);
}

/// Warp 0 fills a buffer, warp 1 empties it: "full" is barrier 1, "free" is barrier 2.
__global__ void produces_and_consumes(const Params p) {
  Words& s = machine::shared<Words>();
  const unsigned lane = machine::thread_index().x % 32;
  const int rounds = p.count / 32;
  if (machine::thread_index().x < 32) {
    for (int round = 0; round < rounds; ++round) {
      if (round > 0) machine::sync_named(2, 64);
      machine::store_shared(&s.word[lane ^ 31], static_cast<int>(lane) + 100 * round);
      machine::arrive_named(1, 64);
    }
  } else {
    for (int round = 0; round < rounds; ++round) {
      machine::sync_named(1, 64);
      machine::store_global(p.data + round * 32 + static_cast<int>(lane), machine::load_shared(&s.word[lane]));
      if (round + 1 < rounds) machine::arrive_named(2, 64);
    }
  }
}
TEST_F(Execution, NamedBarriersBetweenAProducerAndAConsumer) {
  std::vector<int> expected(128);
  for (int i = 0; i < 128; ++i) expected[static_cast<std::size_t>(i)] = i / 32 * 100 + (i % 32 ^ 31);
  expect_everywhere(produces_and_consumes, {"produces", {1}, {64}, sizeof(Words), stream_}, std::vector<int>(128, -1),
                    expected);
}

__global__ void exits_early(const Params p) {
  const unsigned t = machine::thread_index().x;
  if (t >= 40) return;  // the rest of the block still meets
  Words& s = machine::shared<Words>();
  machine::store_shared(&s.word[t], 1);
  machine::sync_block();
  if (t != 0) return;
  int sum = 0;
  for (int i = 0; i < 40; ++i) sum += machine::load_shared(&s.word[i]);
  machine::store_global(p.data, sum);
}
TEST_F(Execution, ABarrierWaitsOnlyForThreadsThatLive) {
  expect_everywhere(exits_early, {"exits", {1}, {128}, sizeof(Words), stream_}, {0}, {40});
}

__global__ void votes_in_the_block(const Params p) {
  const int t = static_cast<int>(machine::thread_index().x);
  const bool first = machine::sync_block_or(t == 77);
  const bool second = machine::sync_block_or(false);
  if (first && !second) machine::atomic_add_global(p.data, 1);
}
TEST_F(Execution, ABarrierThatVotes) {
  expect_everywhere(votes_in_the_block, {"votes", {3}, {128}, 0, stream_}, {0}, {3 * 128});
}

/// A flag in device memory, polled by the threads before the one that sets it.
__global__ void waits_for_a_flag(const Params p) {
  const unsigned t = machine::thread_index().x;
  if (t == 63) {
    machine::store_global(p.data + 1, 42);
    machine::fence_device();
    machine::atomic_exchange_global(p.data, 1);
  } else {
    machine::spin_wait([&] { return machine::atomic_add_global(p.data, 0) == 1; });
    machine::store_global(p.data + 2 + t, machine::load_global(p.data + 1));
  }
}
TEST_F(Execution, PollingLoopsLetTheOthersRun) {
  std::vector<int> expected(65, 42);
  expected[0] = 1;
  expect_everywhere(waits_for_a_flag, {"flag", {1}, {64}, 0, stream_}, std::vector<int>(65, 0), expected);
}

__global__ void names_itself(const Params p) {
  const machine::Index3 t = machine::thread_index();
  const machine::Index3 b = machine::block_index();
  const machine::Index3 size = machine::block_size();
  const machine::Index3 grid = machine::grid_size();
  const unsigned thread = (t.z * size.y + t.y) * size.x + t.x;
  const unsigned block = (b.z * grid.y + b.y) * grid.x + b.x;
  machine::store_global(p.data + block * size.x * size.y * size.z + thread, static_cast<int>(1000 * block + thread));
}
TEST_F(Execution, ThreeDimensionsOfThreadsAndBlocks) {
  std::vector<int> expected(24 * 30);
  for (int i = 0; i < 24 * 30; ++i) expected[static_cast<std::size_t>(i)] = 1000 * (i / 30) + i % 30;
  expect_everywhere(names_itself, {"names", {2, 3, 4}, {5, 3, 2}, 0, stream_}, std::vector<int>(24 * 30, -1), expected);
}

/// The order in which threads and blocks came to one counter.
__global__ void takes_a_ticket(const Params p) {
  const int me = static_cast<int>(machine::block_index().x * machine::block_size().x + machine::thread_index().x);
  const int ticket = machine::atomic_add_global(p.data, 1);
  machine::store_global(p.data + 1 + ticket, me);
}
TEST_F(Execution, OrdersAreWhatTheySay) {
  DeviceArray<int> data(1 + 256);
  std::set<std::vector<int>> seen;
  for (const Settings& settings : all_orders()) {
    const Scoped scoped(settings);
    std::vector<int> runs[2];
    for (std::vector<int>& run : runs) {
      data.set(std::vector<int>(257, 0));
      ASSERT_TRUE(machine::launch({"tickets", {4}, {64}, 0, stream_}, takes_a_ticket, {data.data()}).ok());
      run = data.get();
      run.erase(run.begin());
    }
    EXPECT_EQ(runs[0], runs[1]) << "an order repeats";
    seen.insert(runs[0]);
    std::vector<int> sorted = runs[0];
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, counting(256));
    if (settings.order == Order::forward) {
      EXPECT_EQ(runs[0], counting(256));
    }
    if (settings.order == Order::reverse) {
      std::reverse(runs[0].begin(), runs[0].end());
      EXPECT_EQ(runs[0], counting(256));
    }
  }
  EXPECT_EQ(seen.size(), 4U) << "the seed matters";
}

__global__ void needs_a_deep_stack(const Params p) {
  volatile int local[4096];  // 16 of 64 KB
  for (int i = 0; i < 4096; ++i) local[i] = i;
  machine::sync_block();
  machine::atomic_add_global(p.data, local[4095]);
}
TEST_F(Execution, ThousandThreadsWithLargeFrames) {
  expect_everywhere(needs_a_deep_stack, {"deep", {1}, {1024}, 0, stream_}, {0}, {1024 * 4095});
}

TEST_F(Execution, HostThreadsTakeTurns) {
  std::vector<std::thread> threads;
  std::vector<int> right(4, 0);
  for (std::size_t n = 0; n < 4; ++n) {
    threads.emplace_back([&right, n] {
      for (int repeat = 0; repeat < 10; ++repeat) {
        DeviceArray<int> data(counting(96));
        const Status status = machine::launch({"reverses", {1}, {96}, sizeof(Words)}, reverses, {data.data(), 96});
        std::vector<int> expected = counting(96);
        std::reverse(expected.begin(), expected.end());
        right[n] += status.ok() && data.get() == expected ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, std::vector<int>(4, 10));
}

}  // namespace
}  // namespace sorot::emulator
