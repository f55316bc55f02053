#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "cuda/machine/isa.cuh"
#include "tests/emulator/device_fixture.h"

/// Asynchronous copies and what tensor cores read: right kernels pass however copies land, and each bug is told with
/// its line in every order of threads.
namespace sorot::emulator {
namespace {

constexpr unsigned kThreads = 64;
constexpr int kTiles = 5;

struct Params {
  int* in = nullptr;  ///< kTiles tiles
  int* out = nullptr;
};

/// Four words a thread.
struct Tile {
  alignas(16) int word[4 * kThreads];
};
struct Stages {
  Tile stage[2];
};

class AsyncCopies : public EmulatedDevice {
 protected:
  AsyncCopies() {
    std::vector<int> values(in_.bytes() / sizeof(int));
    std::iota(values.begin(), values.end(), 0);
    in_.set(values);
  }
  std::string line(const std::string& name) const { return bug_line(__FILE__, name); }
  Params params() const { return {in_.data(), out_.data()}; }

  void expect_in_every_order(void (*kernel)(Params), const std::vector<std::string>& parts, bool race = false) {
    for (const Settings& settings : all_orders(race)) {
      const Scoped scoped(settings);
      expect_report(kernel, params(), kThreads, sizeof(Stages), parts);
    }
  }

  DeviceArray<int> in_{kTiles * 4 * kThreads};
  DeviceArray<int> out_{kTiles * kThreads};
};

__device__ void copy_tile(const Params& p, Tile& to, int tile, Site site) {
  const unsigned t = machine::thread_index().x;
  machine::cp_async(machine::shared_address(to.word + 4 * t), p.in + (tile * 4 * static_cast<int>(kThreads)) + 4 * t,
                    site);
}

__device__ void answer(const Params& p, const Tile& from, int tile, Site site) {
  const unsigned t = machine::thread_index().x;
  machine::store_global(p.out + tile * static_cast<int>(kThreads) + t,
                        machine::load_shared(from.word + 4 * (kThreads - 1 - t), site));
}

// ---- A kernel that is right

__global__ void streams_tiles(const Params p) {
  Stages& s = machine::shared<Stages>();
  copy_tile(p, s.stage[0], 0, Site::here());
  machine::cp_async_commit();
  for (int tile = 0; tile < kTiles; ++tile) {
    if (tile + 1 < kTiles) copy_tile(p, s.stage[(tile + 1) % 2], tile + 1, Site::here());
    machine::cp_async_commit();
    machine::cp_async_wait<1>();
    machine::sync_block();
    answer(p, s.stage[tile % 2], tile, Site::here());
    machine::sync_block();
  }
}
TEST_F(AsyncCopies, TwoStagesHoweverCopiesLand) {
  std::vector<int> expected(kTiles * kThreads);
  for (int i = 0; i < kTiles * static_cast<int>(kThreads); ++i) {
    expected[static_cast<std::size_t>(i)] = i / 64 * 256 + 4 * (63 - i % 64);
  }
  for (const bool race : {false, true}) {
    for (const auto copies : {std::optional<Copies>(), {Copies::eager}, {Copies::lazy}, {Copies::random}}) {
      for (Settings settings : all_orders(race)) {
        settings.copies = copies;
        const Scoped scoped(settings);
        out_.set(std::vector<int>(kTiles * kThreads, 0));
        const Status status =
            machine::launch({"streams", {1}, {kThreads}, sizeof(Stages), stream_}, streams_tiles, params());
        ASSERT_TRUE(status.ok()) << last_report();
        EXPECT_EQ(out_.get(), expected);
      }
    }
  }
}

__global__ void looks_before_and_after(const Params p) {
  Stages& s = machine::shared<Stages>();
  const unsigned t = machine::thread_index().x;
  machine::store_shared(&s.stage[0].word[4 * t], 7);
  copy_tile(p, s.stage[0], 1, Site::here());
  machine::store_global(p.out + t, machine::load_shared(&s.stage[0].word[4 * t]));
  machine::cp_async_commit();
  machine::cp_async_wait<0>();
  machine::store_global(p.out + 64 + t, machine::load_shared(&s.stage[0].word[4 * t]));
}
TEST_F(AsyncCopies, LandAtOnceOrWhenTheyAreWaitedFor) {
  for (const Copies copies : {Copies::eager, Copies::lazy, Copies::random}) {
    Settings settings;
    settings.copies = copies;
    const Scoped scoped(settings);
    ASSERT_TRUE(
        machine::launch({"k", {1}, {kThreads}, sizeof(Stages), stream_}, looks_before_and_after, params()).ok());
    const std::vector<int> out = out_.get();
    int landed = 0;
    for (int t = 0; t < 64; ++t) {
      const int value = 256 + 4 * t;
      const int early = out[static_cast<std::size_t>(t)];
      EXPECT_TRUE(early == value || early == -1) << early << ": what was there before is gone as the copy begins";
      landed += early == value ? 1 : 0;
      EXPECT_EQ(out[static_cast<std::size_t>(64 + t)], value);
    }
    EXPECT_GE(landed, copies == Copies::eager ? 64 : copies == Copies::random ? 10 : 0);
    EXPECT_LE(landed, copies == Copies::lazy ? 0 : copies == Copies::random ? 54 : 64);
  }
}

// ---- Kernels with one bug each

__global__ void looks_before_it_waits(const Params p) {
  Stages& s = machine::shared<Stages>();
  copy_tile(p, s.stage[0], 0, Site::here());  // BUG: copy, no wait
  machine::cp_async_commit();
  machine::sync_block();
  answer(p, s.stage[0], 0, Site::here());  // BUG: look, no wait
  machine::cp_async_wait<0>();
}
TEST_F(AsyncCopies, AMissingWait) {
  expect_in_every_order(looks_before_it_waits,
                        {"race", line("copy, no wait"), line("look, no wait"), "copy in flight", "has not waited"},
                        true);
}
TEST_F(AsyncCopies, AMissingWaitGivesNaNWithoutRaceMode) {
  ASSERT_TRUE(machine::launch({"k", {1}, {kThreads}, sizeof(Stages), stream_}, looks_before_it_waits, params()).ok());
  EXPECT_EQ(out_.get()[0], -1);
}

__global__ void waits_for_the_wrong_group(const Params p) {
  Stages& s = machine::shared<Stages>();
  copy_tile(p, s.stage[0], 0, Site::here());  // BUG: copy, wrong group
  machine::cp_async_commit();
  machine::cp_async_wait<1>();
  machine::sync_block();
  answer(p, s.stage[0], 0, Site::here());  // BUG: look, wrong group
  machine::cp_async_wait<0>();
}
TEST_F(AsyncCopies, AWaitThatLeavesOneGroupTooMany) {
  expect_in_every_order(waits_for_the_wrong_group, {line("copy, wrong group"), line("look, wrong group")}, true);
}

__global__ void misses_the_barrier_after_the_wait(const Params p) {
  Stages& s = machine::shared<Stages>();
  copy_tile(p, s.stage[0], 0, Site::here());  // BUG: copy, no barrier
  machine::cp_async_commit();
  machine::cp_async_wait<0>();
  answer(p, s.stage[0], 0, Site::here());  // BUG: look, no barrier
}
TEST_F(AsyncCopies, AMissingBarrierAfterTheWait) {
  expect_in_every_order(misses_the_barrier_after_the_wait, {"race", line("copy, no barrier"), line("look, no barrier")},
                        true);
}
TEST_F(AsyncCopies, AMissingBarrierAfterTheWaitGivesNaNWithoutRaceMode) {
  ASSERT_TRUE(
      machine::launch({"k", {1}, {kThreads}, sizeof(Stages), stream_}, misses_the_barrier_after_the_wait, params())
          .ok());
  EXPECT_EQ(out_.get()[0], -1);
}

__global__ void misses_the_barrier_at_the_end(const Params p) {
  Stages& s = machine::shared<Stages>();
  for (int tile = 0; tile < 2; ++tile) {
    copy_tile(p, s.stage[0], tile, Site::here());  // BUG: copy, no end
    machine::cp_async_commit();
    machine::cp_async_wait<0>();
    machine::sync_block();
    answer(p, s.stage[0], tile, Site::here());  // BUG: look, no end
  }
}
TEST_F(AsyncCopies, AMissingBarrierAtTheEndOfALoop) {
  expect_in_every_order(misses_the_barrier_at_the_end, {"race", line("copy, no end"), line("look, no end")}, true);
}

__global__ void overwrites_what_is_being_copied(const Params p) {
  Stages& s = machine::shared<Stages>();
  const unsigned t = machine::thread_index().x;
  copy_tile(p, s.stage[0], 0, Site::here());  // BUG: copy of what changes
  machine::cp_async_commit();
  if (t == 63) machine::store_global(p.in, 1);  // BUG: change
  machine::cp_async_wait<0>();
}
TEST_F(AsyncCopies, AChangeOfWhatIsBeingCopied) {
  expect_in_every_order(overwrites_what_is_being_copied,
                        {"race", line("copy of what changes"), line("change"), "byte 0 of allocation"}, true);
}

__global__ void copies_too_far(const Params p) {
  const std::uint32_t begin = machine::shared_address(&machine::shared<Stages>());
  machine::cp_async(begin + 1024 + 16 + 16 * machine::thread_index().x, p.in);  // BUG: too far
  machine::cp_async_commit();
  machine::cp_async_wait<0>();
}
TEST_F(AsyncCopies, BehindSharedMemory) {
  expect_in_every_order(copies_too_far, {line("too far"), "cp_async", "thread 63", "16 bytes at shared memory + 2048",
                                         "the block has 2048 bytes"});
}

__global__ void copies_from_too_far(const Params p) {
  Stages& s = machine::shared<Stages>();
  machine::cp_async(machine::shared_address(s.stage), p.in + kTiles * 4 * kThreads - 3);  // BUG: from too far
}
TEST_F(AsyncCopies, FromBehindAnAllocation) {
  expect_in_every_order(copies_from_too_far, {line("from too far"), "cp_async", "16 bytes at byte 5108 of allocation"});
}

__global__ void copies_misaligned(const Params p) {
  Stages& s = machine::shared<Stages>();
  machine::cp_async(machine::shared_address(s.stage) + 8, p.in);  // BUG: misaligned copy
}
TEST_F(AsyncCopies, ToAMisalignedAddress) {
  expect_in_every_order(copies_misaligned, {line("misaligned copy"), "shared memory + 8 is not aligned"});
}

__global__ void copies_zeros(const Params p) {
  Stages& s = machine::shared<Stages>();
  const unsigned t = machine::thread_index().x;
  const int* nowhere = p.in + 4 * 64 * kTiles;
  machine::cp_async_or_zero(machine::shared_address(s.stage[0].word + 4 * t), nowhere, false);
  machine::cp_async_commit();
  machine::cp_async_wait<0>();
  machine::store_global(p.out + t, machine::load_shared(s.stage[0].word + 4 * t));
}
TEST_F(AsyncCopies, OfNothingReadNothing) {
  for (const Settings& settings : all_orders(true)) {
    const Scoped scoped(settings);
    ASSERT_TRUE(machine::launch({"k", {1}, {kThreads}, sizeof(Stages), stream_}, copies_zeros, params()).ok());
    EXPECT_EQ(out_.get()[17], 0);
  }
}

__global__ void forgets_its_copy(const Params p) {
  Stages& s = machine::shared<Stages>();
  copy_tile(p, s.stage[0], 0, Site::here());
  machine::cp_async_commit();
  machine::cp_async_wait<0>();
  copy_tile(p, s.stage[1], 1, Site::here());  // BUG: forgotten
  machine::cp_async_commit();
  machine::cp_async_wait<1>();
}
TEST_F(AsyncCopies, NobodyWaitsFor) {
  expect_in_every_order(forgets_its_copy, {line("forgotten"), "has exited, but has not waited for its cp_async"});
}

__global__ void forgets_to_commit(const Params p) {
  copy_tile(p, machine::shared<Stages>().stage[0], 0, Site::here());  // BUG: not committed
  machine::cp_async_wait<0>();
}
TEST_F(AsyncCopies, NobodyCommits) {
  expect_in_every_order(forgets_to_commit, {line("not committed"), "has not waited for its cp_async"});
}

TEST_F(AsyncCopies, NeedSm80) {
  Settings settings;
  settings.profile = 75;
  const Scoped scoped(settings);
  expect_report(forgets_to_commit, params(), kThreads, sizeof(Stages),
                {line("not committed"), "cp_async", "needs sm_80, but the device is sm_75"});
}

__global__ void copies_into_global_memory(const Params p) {
  machine::cp_async(machine::shared_address(p.out), p.in);  // BUG: no shared memory
}
TEST_F(AsyncCopies, IntoGlobalMemory) {
  expect_in_every_order(copies_into_global_memory, {line("no shared memory"), "not shared memory", "byte 0 of alloc"});
}

// ---- Tensor cores

__global__ void reads_matrices_in_flight(const Params p) {
  Stages& s = machine::shared<Stages>();
  copy_tile(p, s.stage[0], 0, Site::here());  // BUG: copy of matrices
  machine::cp_async_commit();
  machine::sync_block();
  std::uint32_t r[4];
  machine::ldmatrix_x4(machine::shared_address(s.stage[0].word + 4 * machine::thread_index().x), r);  // BUG: matrices
  machine::cp_async_wait<0>();
}
TEST_F(AsyncCopies, MatricesInFlight) {
  expect_in_every_order(reads_matrices_in_flight, {line("copy of matrices"), line("matrices"), "in flight"}, true);
}

__global__ void overwrites_matrices(const Params) {
  Stages& s = machine::shared<Stages>();
  const unsigned t = machine::thread_index().x;
  machine::store_shared(s.stage[0].word + 4 * t, 1);
  machine::sync_block();
  std::uint32_t r[4];
  machine::ldmatrix_x4_trans(machine::shared_address(s.stage[0].word + 4 * t), r);  // BUG: read of matrices
  machine::store_shared(s.stage[0].word + 4 * (t ^ 1), 2);                          // BUG: overwritten matrices
}
TEST_F(AsyncCopies, MatricesOverwrittenWithoutABarrier) {
  expect_in_every_order(overwrites_matrices, {line("read of matrices"), line("overwritten matrices")}, true);
}

__global__ void reads_misaligned_matrices(const Params) {
  std::uint32_t r[4];
  machine::ldmatrix_x4(machine::shared_address(&machine::shared<Stages>()) + 8, r);  // BUG: misaligned matrix
}
TEST_F(AsyncCopies, AMisalignedMatrix) {
  expect_in_every_order(reads_misaligned_matrices,
                        {line("misaligned matrix"), "ldmatrix_x4", "shared memory + 8 is not aligned to its 16 bytes"});
}

__global__ void reads_matrices_too_far(const Params) {
  std::uint32_t r[4];
  machine::ldmatrix_x4(machine::shared_address(&machine::shared<Stages>()) + 2048, r);  // BUG: matrix too far
}
TEST_F(AsyncCopies, AMatrixBehindSharedMemory) {
  expect_in_every_order(reads_matrices_too_far, {line("matrix too far"), "16 bytes at shared memory + 2048"});
}

__global__ void multiplies_without_a_lane(const Params) {
  if (machine::thread_index().x == 13) return;
  float d[4] = {};
  const std::uint32_t a[4] = {};
  machine::mma_m16n8k16<float16>(d, a, 0, 0);  // BUG: a lane is gone
}
TEST_F(AsyncCopies, AMultiplicationWithoutALane) {
  expect_in_every_order(multiplies_without_a_lane, {line("a lane is gone"), "mma_m16n8k16", "exited"});
}

}  // namespace
}  // namespace sorot::emulator
