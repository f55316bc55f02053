#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "cuda/machine/isa.cuh"
#include "tests/emulator/device_fixture.h"

/// Race mode and global memory: what nothing orders is told with both lines in every order, what is ordered is not.
namespace sorot::emulator {
namespace {

constexpr unsigned kThreads = 64;
constexpr unsigned kBlocks = 4;

struct Params {
  int* data = nullptr;
  int* counter = nullptr;
};

class GlobalRaces : public EmulatedDevice {
 protected:
  std::string line(const std::string& name) const { return bug_line(__FILE__, name); }

  void expect_in_every_order(void (*kernel)(Params), const std::vector<std::string>& parts, unsigned blocks) {
    for (const Settings& settings : all_orders(true)) {
      const Scoped scoped(settings);
      expect_report(kernel, Params{data_.data(), counter_.data()}, kThreads, sizeof(int), parts, blocks);
    }
  }
  void expect_none(void (*kernel)(Params)) {
    for (const Settings& settings : all_orders(true)) {
      const Scoped scoped(settings);
      counter_.set({0});
      const Status status =
          machine::launch({"k", {kBlocks}, {kThreads}, sizeof(int), stream_}, kernel, {data_.data(), counter_.data()});
      ASSERT_TRUE(status.ok()) << last_report();
    }
  }

  DeviceArray<int> data_{std::vector<int>(kBlocks * kThreads, 1)};
  DeviceArray<int> counter_{std::vector<int>(1, 0)};
};

// ---- Kernels with one bug each

__global__ void reads_its_neighbour(const Params p) {
  const unsigned t = machine::thread_index().x;
  machine::store_global(p.data + t, 5);                                  // BUG: own word
  static_cast<void>(machine::load_global(p.data + (t + 1) % kThreads));  // BUG: neighbour
}
TEST_F(GlobalRaces, BetweenThreads) {
  expect_in_every_order(reads_its_neighbour,
                        {"race", line("own word"), line("neighbour"), "no barrier between them", "of allocation"}, 1);
}

__global__ void reads_its_neighbour_block(const Params p) {
  const unsigned b = machine::block_index().x;
  const unsigned t = machine::thread_index().x;
  machine::store_global(p.data + b * kThreads + t, 5);  // BUG: own block
  machine::sync_block();
  static_cast<void>(machine::load_global(p.data + (b + 1) % kBlocks * kThreads + t));  // BUG: other block
}
TEST_F(GlobalRaces, BetweenBlocks) {
  expect_in_every_order(reads_its_neighbour_block,
                        {"race", line("own block"), line("other block"), "blocks of a launch run in any order"},
                        kBlocks);
}

__global__ void overwrites_what_others_read(const Params p) {
  static_cast<void>(machine::load_global(p.data + 3));  // BUG: read by all
  machine::sync_block();
  if (machine::thread_index().x == 0) machine::store_global(p.data + 3, 1);  // BUG: one writes
}
TEST_F(GlobalRaces, AWriteAfterOtherBlocksHaveRead) {
  expect_in_every_order(overwrites_what_others_read, {"race", line("read by all"), line("one writes")}, kBlocks);
}

__global__ void all_write_one_word(const Params p) {
  machine::store_global(p.data, 1);  // BUG: all write
}
TEST_F(GlobalRaces, WritesOfTheSameValue) { expect_in_every_order(all_write_one_word, {"race", line("all write")}, 1); }

__global__ void mixes_atomics_with_stores(const Params p) {
  if (machine::thread_index().x != 40) {
    machine::atomic_add_global(p.data, 1);  // BUG: atomic
  } else {
    machine::store_global(p.data, 1);  // BUG: store
  }
}
TEST_F(GlobalRaces, AnAtomicAndAStore) {
  expect_in_every_order(mixes_atomics_with_stores, {"race", line("atomic"), line("store")}, 1);
}

/// The last block to come adds up what all have left; with a fence before it says that it has come.
template <bool kFence>
__device__ void adds_up(const Params& p, Site store, Site load) {
  int& ticket = machine::shared<int>();
  const unsigned b = machine::block_index().x;
  const unsigned t = machine::thread_index().x;
  machine::store_global(p.data + b * kThreads + t, 1, store);
  if constexpr (kFence) machine::fence_device();
  machine::sync_block();
  if (t == 0) machine::store_shared(&ticket, machine::atomic_add_global(p.counter, 1));
  machine::sync_block();
  if (machine::load_shared(&ticket) != static_cast<int>(kBlocks) - 1) return;
  for (unsigned block = 0; block < kBlocks; ++block) {
    static_cast<void>(machine::load_global(p.data + block * kThreads + kThreads - 1 - t, load));
  }
}

__global__ void adds_up_without_a_fence(const Params p) {
  constexpr Site kStore = Site::here();  // BUG: left without a fence
  constexpr Site kLoad = Site::here();   // BUG: added up
  adds_up<false>(p, kStore, kLoad);
}
TEST_F(GlobalRaces, AMissingFence) {
  for (const Settings& settings : all_orders(true)) {
    const Scoped scoped(settings);
    counter_.set({0});
    expect_report(adds_up_without_a_fence, Params{data_.data(), counter_.data()}, kThreads, sizeof(int),
                  {"race", line("left without a fence"), line("added up")}, kBlocks);
  }
}

// ---- Kernels that are right

/// As CUDA's own example does it: thread 0 fences for all, after a barrier.
__global__ void adds_up_in_the_last_block(const Params p) {
  machine::sync_block();
  adds_up<true>(p, Site::here(), Site::here());
}
TEST_F(GlobalRaces, AFenceAndAnAtomicOrderBlocks) { expect_none(adds_up_in_the_last_block); }

__global__ void passes_by_a_barrier(const Params p) {
  const unsigned t = machine::thread_index().x;
  int* block = p.data + machine::block_index().x * kThreads;
  machine::store_global(block + t, 5);
  machine::sync_block();
  const int other = machine::load_global(block + kThreads - 1 - t);
  machine::sync_block();
  machine::store_global(block + t, other);
}
TEST_F(GlobalRaces, NoneAcrossABarrier) { expect_none(passes_by_a_barrier); }

__global__ void writes_parts_of_words(const Params p) {
  const unsigned i = machine::block_index().x * kThreads + machine::thread_index().x;
  machine::store_global(reinterpret_cast<std::uint8_t*>(p.data) + i, std::uint8_t{1});
  machine::store_global(reinterpret_cast<std::uint16_t*>(p.data + kThreads) + i, std::uint16_t{1});
}
TEST_F(GlobalRaces, NoneBetweenPartsOfAWord) { expect_none(writes_parts_of_words); }

__global__ void counts_by_atomics(const Params p) {
  machine::atomic_add_global(p.counter, 1);
  machine::atomic_max_global(p.data, 3);
}
TEST_F(GlobalRaces, NoneBetweenAtomics) { expect_none(counts_by_atomics); }

__global__ void all_read_one_word(const Params p) {
  const int value = machine::load_global(p.counter);
  machine::store_global(p.data + machine::block_index().x * kThreads + machine::thread_index().x, value);
}
TEST_F(GlobalRaces, NoneBetweenReadsOrLaunches) { expect_none(all_read_one_word); }

}  // namespace
}  // namespace sorot::emulator
