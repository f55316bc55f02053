#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "cuda/machine/isa.cuh"
#include "tests/emulator/device_fixture.h"

/// Kernels with one bug each. What is wrong is told, with the line of the kernel, in every order of threads.
namespace sorot::emulator {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

struct Params {
  int* data = nullptr;
};

struct Words {
  int word[64];
};

class Bugs : public EmulatedDevice {
 protected:
  std::string line(const std::string& name) const { return bug_line(__FILE__, name); }

  void expect_in_every_order(void (*kernel)(Params), unsigned threads, const std::vector<std::string>& parts,
                             bool race = false) {
    DeviceArray<int> data(std::vector<int>(64, 7));
    for (const Settings& settings : all_orders(race)) {
      const Scoped scoped(settings);
      expect_report(kernel, Params{data.data()}, threads, sizeof(Words), parts);
    }
  }
};

// ---- Memory

__global__ void overruns_shared(const Params) {
  Words& s = machine::shared<Words>();
  machine::store_shared(&s.word[machine::thread_index().x + 1], 1);  // BUG: shared overrun
}
TEST_F(Bugs, AStoreBehindSharedMemory) {
  expect_in_every_order(overruns_shared, 64,
                        {line("shared overrun"), "store_shared", "thread 63", "4 bytes at shared memory + 256",
                         "the block has 256 bytes"});
}

__global__ void overruns_past_the_wrappers(const Params) {
  Words& s = machine::shared<Words>();
  int* beyond = &s.word[0] + 64 + machine::thread_index().x;
  *static_cast<volatile int*>(beyond) = 1;
}
TEST_F(Bugs, APlainStoreBehindSharedMemory) {
  expect_in_every_order(overruns_past_the_wrappers, 1, {"kernel_with_a_bug", "shared memory + 256", "256 bytes"});
}

struct TooLarge {
  int word[65];
};
__global__ void asks_for_more_than_it_was_given(const Params) {
  machine::store_shared(&machine::shared<TooLarge>().word[0], 1);  // BUG: storage
}
TEST_F(Bugs, MoreSharedMemoryThanTheLaunchGave) {
  expect_in_every_order(asks_for_more_than_it_was_given, 32, {line("storage"), "wants 260 bytes", "256"});
}

__global__ void overruns_global(const Params p) {
  machine::store_global(p.data + machine::thread_index().x * 2, 1);  // BUG: global overrun
}
TEST_F(Bugs, AStoreBehindGlobalMemory) {
  expect_in_every_order(overruns_global, 64,
                        {line("global overrun"), "store_global", "behind allocation", "(256 bytes)"});
}

__global__ void reads_null(const Params) {
  static_cast<void>(machine::load_global<int>(nullptr));  // BUG: null
}
TEST_F(Bugs, ANullPointer) {
  expect_in_every_order(reads_null, 32, {line("null"), "4 bytes at 0x0, which is not device memory"});
}

__global__ void writes_beside_an_allocation(const Params p) { *static_cast<volatile int*>(p.data + 64) = 1; }
TEST_F(Bugs, APlainStoreBehindGlobalMemory) {
  DeviceArray<int> data(std::vector<int>(63, 7));  // 4 bytes to the next 256-byte boundary
  Params p{data.data() - 1};
  expect_report(writes_beside_an_allocation, p, 1, 0, {"memory beside allocation", "(252 bytes) was overwritten"});
}

__global__ void loads_misaligned(const Params p) {
  const auto* address = reinterpret_cast<const machine::Float4*>(p.data + 1);
  static_cast<void>(machine::load_global(address));  // BUG: misaligned
}
TEST_F(Bugs, AMisalignedLoad) {
  expect_in_every_order(loads_misaligned, 32, {line("misaligned"), "byte 4 of allocation", "not aligned to 16 bytes"});
}

__global__ void stores_misaligned(const Params) {
  auto* bytes = reinterpret_cast<char*>(&machine::shared<Words>());
  machine::store_shared(reinterpret_cast<int*>(bytes + 2), 1);  // BUG: misaligned shared
}
TEST_F(Bugs, AMisalignedStoreToSharedMemory) {
  expect_in_every_order(stores_misaligned, 32, {line("misaligned shared"), "shared memory + 2 is not aligned"});
}

__global__ void stores_to_global_as_shared(const Params p) {
  machine::store_shared(p.data, 1);  // BUG: wrong space
}
TEST_F(Bugs, AGlobalAddressAsSharedMemory) {
  expect_in_every_order(stores_to_global_as_shared, 32,
                        {line("wrong space"), "not shared memory", "byte 0 of allocation"});
}

// ---- Barriers

__global__ void misses_a_barrier(const Params p) {
  Words& s = machine::shared<Words>();
  const unsigned t = machine::thread_index().x;
  machine::store_shared(&s.word[t], static_cast<int>(t));                    // BUG: early store
  machine::store_global(p.data + t, machine::load_shared(&s.word[63 - t]));  // BUG: early load
}
TEST_F(Bugs, AMissingBarrierIsARaceInEveryOrder) {
  expect_in_every_order(misses_a_barrier, 64,
                        {"race", line("early store"), line("early load"), "is not ordered after", "no barrier"}, true);
}
TEST_F(Bugs, AMissingBarrierGivesNaNWithoutRaceMode) {
  DeviceArray<int> data(std::vector<int>(64, 7));
  ASSERT_TRUE(machine::launch({"k", {1}, {64}, sizeof(Words), stream_}, misses_a_barrier, {data.data()}).ok());
  EXPECT_EQ(data.get()[0], -1) << "fresh shared memory holds all ones";
}

__global__ void misses_a_barrier_before_overwriting(const Params p) {
  Words& s = machine::shared<Words>();
  const unsigned t = machine::thread_index().x;
  machine::store_shared(&s.word[t], 1);
  machine::sync_block();
  machine::store_global(p.data + t, machine::load_shared(&s.word[63 - t]));  // BUG: read
  machine::store_shared(&s.word[t], 2);                                      // BUG: overwrite
}
TEST_F(Bugs, AMissingBarrierBeforeOverwriting) {
  expect_in_every_order(misses_a_barrier_before_overwriting, 64, {"race", line("read"), line("overwrite")}, true);
}

__global__ void reads_a_byte_of_a_neighbours_word(const Params p) {
  Words& s = machine::shared<Words>();
  const unsigned t = machine::thread_index().x;
  auto* bytes = reinterpret_cast<std::uint8_t*>(s.word);
  machine::store_shared(bytes + t, std::uint8_t{1});  // BUG: byte
  if (t == 5) {
    machine::store_global(p.data, machine::load_shared(&s.word[1]));  // BUG: word
  }
}
TEST_F(Bugs, AByteOfAWordThatAnotherThreadReads) {
  expect_in_every_order(reads_a_byte_of_a_neighbours_word, 32, {"race", line("byte"), line("word")}, true);
}

__global__ void relies_on_lockstep(const Params p) {
  Words& s = machine::shared<Words>();
  const unsigned t = machine::thread_index().x;
  machine::store_shared(&s.word[t], 1);
  static_cast<void>(machine::shuffle(t, 0));                                 // orders nothing
  machine::store_global(p.data + t, machine::load_shared(&s.word[31 - t]));  // BUG: lockstep
}
TEST_F(Bugs, LanesThatRelyOnLockstep) {
  expect_in_every_order(relies_on_lockstep, 32, {"race", line("lockstep")}, true);
}

__global__ void diverges_at_a_barrier(const Params) {
  if (machine::thread_index().x < 32) {
    machine::sync_block();  // BUG: one branch
  } else {
    machine::sync_block();  // BUG: other branch
  }
}
TEST_F(Bugs, ADivergentBarrier) {
  expect_in_every_order(diverges_at_a_barrier, 64, {"divergent barrier", line("one branch"), line("other branch")});
}

__global__ void half_a_warp_waits_elsewhere(const Params) {
  if (machine::thread_index().x % 32 < 16) {
    machine::sync_block();  // BUG: half in a barrier
  } else {
    machine::sync_warp();  // BUG: half in sync_warp
  }
}
TEST_F(Bugs, ADeadlock) {
  expect_in_every_order(
      half_a_warp_waits_elsewhere, 32,
      {"deadlock", "block (0, 0, 0)", "threads 0-15 wait in sync_block at " + line("half in a barrier"),
       "threads 16-31 wait in sync_warp at " + line("half in sync_warp"), "misses lanes 0-15",
       "16 of 32 threads have arrived"});
}

__global__ void waits_for_nobody(const Params) {
  if (machine::thread_index().x < 32) machine::sync_named(1, 64);  // BUG: nobody arrives
}
TEST_F(Bugs, ANamedBarrierNobodyArrivesAt) {
  expect_in_every_order(
      waits_for_nobody, 64,
      {"deadlock", "sync_named at " + line("nobody arrives"), "barrier 1: 32 of 64", "threads 32-63 have exited"});
}

__global__ void disagrees_on_a_barrier(const Params) {
  const bool first = machine::thread_index().x < 32;
  machine::sync_named(1, first ? 64 : 96);  // BUG: two sizes
}
TEST_F(Bugs, ANamedBarrierOfTwoSizes) {
  expect_in_every_order(disagrees_on_a_barrier, 64, {line("two sizes"), "barrier 1", "64", "96"});
}

__global__ void names_barrier_16(const Params) {
  machine::arrive_named(16, 32);  // BUG: barrier 16
}
TEST_F(Bugs, ABarrierThatDoesNotExist) {
  expect_in_every_order(names_barrier_16, 32, {line("barrier 16"), "names barrier 16, expected 1..15"});
}

__global__ void spins_for_ever(const Params p) {
  if (machine::thread_index().x == 0) {
    machine::spin_wait([&] { return machine::load_global(p.data) == 1; });  // BUG: spins
  }
}
TEST_F(Bugs, AFlagThatNobodySets) {
  expect_in_every_order(spins_for_ever, 64, {"deadlock", "threads 0 wait in spin_wait at " + line("spins")});
}

// ---- Warps

__global__ void names_an_exited_lane(const Params) {
  if (machine::thread_index().x == 13) return;
  static_cast<void>(machine::shuffle_xor(1, 1));  // BUG: exited lane
}
TEST_F(Bugs, AMaskThatNamesAnExitedLane) {
  expect_in_every_order(names_an_exited_lane, 32, {line("exited lane"), "shuffle_xor", "exited"});
}

__global__ void is_not_in_its_own_mask(const Params) {
  static_cast<void>(machine::ballot(true, 0x0000'FFFF));  // BUG: own mask
}
TEST_F(Bugs, ALaneOutsideItsOwnMask) {
  expect_in_every_order(is_not_in_its_own_mask, 32, {line("own mask"), "is not in the mask of its ballot"});
}

__global__ void meets_at_two_lines(const Params) {
  if (machine::thread_index().x < 16) {
    static_cast<void>(machine::shuffle(1, 0));  // BUG: line one
  } else {
    static_cast<void>(machine::shuffle(1, 0));  // BUG: line two
  }
}
TEST_F(Bugs, LanesOfOneWarpAtTwoLines) {
  expect_in_every_order(meets_at_two_lines, 32, {"divergent warp", line("line one"), line("line two")});
}

__global__ void reads_a_lane_outside_the_mask(const Params) {
  if (machine::thread_index().x < 16) static_cast<void>(machine::shuffle(1, 20, 0x0000'FFFF));  // BUG: lane 20
}
TEST_F(Bugs, AShuffleFromALaneOutsideTheMask) {
  expect_in_every_order(reads_a_lane_outside_the_mask, 32,
                        {line("lane 20"), "reads lane 20, which is not in the mask"});
}

// ---- After a bug

__global__ void counts_threads(const Params p) { machine::atomic_add_global(p.data, 1); }

TEST_F(Bugs, TheDeviceWorksOnAfterAFailedLaunch) {
  DeviceArray<int> data(std::vector<int>(64, 0));
  int expected = 0;
  for (const bool portable : {false, true, false}) {
    Settings settings;
    settings.portable_fibers = portable;
    const Scoped scoped(settings);
    EXPECT_FALSE(machine::launch({"k", {2}, {64}, sizeof(Words), stream_}, diverges_at_a_barrier, {}).ok());
    ASSERT_TRUE(machine::launch({"k", {5}, {64}, 0, stream_}, counts_threads, {data.data()}).ok());
    EXPECT_EQ(data.get()[0], expected += 320);
  }
}

// ---- Launches and copies that CUDA refuses

TEST_F(Bugs, LaunchesBeyondTheDevice) {
  DeviceArray<int> data(64);
  const auto message = [&](const machine::LaunchConfig& config) {
    const Status status = machine::launch(config, counts_threads, {data.data()});  // BUG: launch
    EXPECT_EQ(status.code(), StatusCode::kDeviceError);
    EXPECT_THAT(status.message(), HasSubstr(line("launch")));
    EXPECT_THAT(status.message(), HasSubstr("launch of k"));
    return std::string(status.message());
  };
  EXPECT_THAT(message({"k", {1, 65536}, {32}, 0, stream_}),
              HasSubstr("grid is (1, 65536, 1), expected 1..(2147483647, 65535, 65535)"));
  EXPECT_THAT(message({"k", {0}, {32}, 0, stream_}), HasSubstr("grid is (0, 1, 1)"));
  EXPECT_THAT(message({"k", {1}, {1025}, 0, stream_}), HasSubstr("block is (1025, 1, 1)"));
  EXPECT_THAT(message({"k", {1}, {64, 32}, 0, stream_}), HasSubstr("block is (64, 32, 1)"));
  EXPECT_THAT(message({"k", {1}, {32, 1, 65}, 0, stream_}), HasSubstr("block is (32, 1, 65)"));
  const int most[][2] = {{75, 65536}, {80, 166912}, {86, 101376}, {90, 232448}, {100, 232448}, {120, 101376}};
  for (const auto& [profile, bytes] : most) {
    Settings settings;
    settings.profile = profile;
    const Scoped scoped(settings);
    const auto fits = static_cast<std::size_t>(bytes);
    EXPECT_TRUE(machine::launch({"k", {1}, {32}, fits, stream_}, counts_threads, {data.data()}).ok());
    EXPECT_THAT(message({"k", {1}, {32}, fits + 1, stream_}),
                HasSubstr("sm_" + std::to_string(profile) + " has at most " + std::to_string(bytes)));
  }
}

TEST_F(Bugs, CopiesInTheWrongDirection) {
  DeviceArray<int> data(64);
  std::vector<int> host(64);
  using machine::Copy;
  const auto message = [&](void* to, const void* from, std::size_t bytes, Copy direction) {
    const Status status = machine::copy(to, from, bytes, direction, stream_);  // BUG: copy
    EXPECT_EQ(status.code(), StatusCode::kDeviceError);
    EXPECT_THAT(status.message(), HasSubstr(line("copy")));
    return std::string(status.message());
  };
  EXPECT_THAT(message(host.data(), data.data(), 256, Copy::host_to_device),
              ContainsRegex("to is 256 bytes at 0x[0-9a-f]+, which is not device memory"));
  EXPECT_THAT(message(data.data(), host.data(), 256, Copy::device_to_host), HasSubstr("to is byte 0 of allocation"));
  EXPECT_THAT(message(data.data(), data.data(), 256, Copy::host_to_device), HasSubstr("expected host memory"));
  EXPECT_THAT(message(data.data(), host.data(), 256, Copy::device_to_device),
              ContainsRegex("from is 256 bytes at 0x[0-9a-f]+, which is not device memory"));
  EXPECT_THAT(message(data.data() + 1, host.data(), 256, Copy::host_to_device), HasSubstr("byte 4 of allocation"));
  const Status status = machine::fill(data.data(), 0, 257, stream_);
  EXPECT_THAT(status.message(), HasSubstr("257 bytes"));
}

using BugsDeathTest = Bugs;

TEST_F(BugsDeathTest, AHostAccessToDeviceMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  DeviceArray<int> data(64);
  EXPECT_DEATH(static_cast<void>(*static_cast<volatile int*>(data.data() + 3)),
               "the host touched device memory at 0x[0-9a-f]+, byte 12 of allocation [0-9]+ .256 bytes.");
}

}  // namespace
}  // namespace sorot::emulator
