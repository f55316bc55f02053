#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/emulator/control.h"
#include "cuda/emulator/counters.h"
#include "cuda/emulator/fiber.h"
#include "cuda/emulator/memory.h"
#include "cuda/emulator/profile.h"
#include "cuda/emulator/race.h"
#include "cuda/machine/site.h"
#include "cuda/machine/types.h"

/// Runs the blocks of a launch one after the other, every CUDA thread of a block a fiber. What a thread may do is in
/// device.h; this is who runs when, what they wait for, and how a launch ends.
namespace sorot::inline v0::emulator {

using machine::Site;

/// Why a launch failed: a CUDA error code and a report.
struct Failure {
  int code = 0;
  std::string report;
  explicit operator bool() const { return code != 0; }
};

// CUDA's own numbers (driver_types.h).
inline constexpr int kErrorInvalidValue = 1;
inline constexpr int kErrorMemoryAllocation = 2;
inline constexpr int kErrorInvalidConfiguration = 9;
inline constexpr int kErrorInvalidDevice = 101;
inline constexpr int kErrorNoKernelImage = 209;
inline constexpr int kErrorInvalidHandle = 400;
inline constexpr int kErrorIllegalAddress = 700;
inline constexpr int kErrorLaunchTimeout = 702;
inline constexpr int kErrorMisalignedAddress = 716;
inline constexpr int kErrorLaunchFailure = 719;
inline constexpr int kErrorCaptureUnsupported = 900;
inline constexpr int kErrorCaptureInvalidated = 901;

inline constexpr unsigned char kPoison = 0xFF;  ///< NaN in every floating type: shared memory that nobody has written

struct Warp;

/// An asynchronous copy that its thread has not waited for yet.
struct AsyncCopy {
  std::byte* to;
  const void* from;  ///< null: zeros
  unsigned group;    ///< how many its thread had committed before
  bool landed;
  Site site;
};

struct Thread {
  enum class State : std::uint8_t { ready, waiting, yielding, spinning, done };

  Fiber fiber;
  machine::Index3 index{};
  unsigned number = 0;  ///< in its block
  unsigned lane = 0;
  Warp* warp = nullptr;
  State state = State::done;
  const char* instruction = "";  ///< what it waits in
  Site site;
  unsigned result = 0;  ///< of the barrier it waited at
  Clock clock;          ///< what it brings to a barrier of its warp
  std::vector<AsyncCopy> copies;
  unsigned committed = 0;  ///< groups of copies
};

/// A barrier of the block (number 0: all its threads) that some threads have reached.
struct Barrier {
  unsigned arrived = 0;
  unsigned expected = 0;  ///< threads; 0: all that live
  const char* instruction = nullptr;
  Site site;
  bool any = false;  ///< some thread came with a true predicate
  std::vector<Thread*> waiting;
  Clock clock;
};

/// What some lanes of a warp have reached and the others named in the mask have not.
struct Collective {
  unsigned mask = 0;
  unsigned arrived = 0;
  const char* instruction = nullptr;
  Site site;
  void* arguments[machine::kWarpSize] = {};
};

struct Warp {
  unsigned number = 0;
  unsigned ready = 0;  ///< lanes
  unsigned live = 0;
  Thread* lanes[machine::kWarpSize] = {};
  std::vector<Collective> open;
};

struct LaunchRequest {
  LaunchRecord record;
  const char* kernel = "";
  std::function<void()> body;  ///< the kernel with its parameters
  Site site;
};

class Engine {
 public:
  static constexpr unsigned kBarriers = 16;
  static constexpr unsigned kWarps = kMostThreads / machine::kWarpSize;
  static constexpr std::size_t kSharedArena = 256 << 10;  ///< the largest block's memory and a red zone

  ~Engine();

  /// Refuses what the device would, runs the rest to its end.
  Failure launch(const LaunchRequest& wanted);

  /// How often each byte of device memory was read while counting.
  std::vector<std::uint32_t> reads(const void* address, std::size_t bytes) const;
  void clear_reads() { reads_.clear(); }

  // For a thread that runs.
  bool running() const { return current != nullptr; }
  [[noreturn]] void fail(int code, const std::string& report);
  [[noreturn]] void stop(const Failure& failure);  ///< ends the launch where nothing may be thrown
  std::string place(Site site) const;              ///< "attention_simt.cu:12"
  std::string who() const;                         ///< "kernel k, block (0, 0, 0), thread 3 (warp 0, lane 3)"
  void wait(const char* instruction, Site site);
  void spin(Site site);
  void yield(const char* instruction, Site site);  ///< to all threads that can run
  void make_ready(Thread& thread);
  void complete(Barrier& barrier);  ///< lets the threads that wait there go
  void count_read(const Allocation& allocation, std::uintptr_t address, std::size_t bytes);
  std::uint64_t random();
  std::string table() const;  ///< who waits where

  Settings settings;
  DeviceMemory memory;
  Counters counters;
  RaceChecker race;

  Thread* current = nullptr;
  const LaunchRequest* request = nullptr;
  machine::Index3 block{};
  Barrier barriers[kBarriers];
  Warp warps[kWarps];
  unsigned live = 0;
  std::uint64_t switches = 0;
  std::uint64_t progress = 0;  ///< grows when anything but spinning happens
  std::byte* shared = nullptr;
  std::size_t shared_bytes = 0;
  bool observed = false;  ///< race or count

  /// What a thread is about to access through the machine's functions, while it is observed.
  struct Announced {
    const Thread* thread = nullptr;
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    Access access = Access::read;
  };
  Announced announced;

 private:
  static void fiber_main();

  Failure check(const LaunchRequest& wanted) const;
  Failure prepare_threads(unsigned count);
  Failure run_block();
  void start_block();
  void end_thread();
  Thread* pick();
  void go_on(Thread& from);
  void go_to(Fiber& from, Fiber& to);
  bool release_spinners();
  bool release_yielding();
  Failure check_red_zone(std::size_t bytes) const;

  std::vector<std::unique_ptr<Thread>> threads_;
  unsigned thread_count_ = 0;
  unsigned ready_warps_ = 0;
  unsigned last_warp_ = 0;
  std::uint64_t random_state_ = 1;
  std::uint64_t progress_at_spin_ = 0;
  std::vector<Thread*> spinning_;
  std::vector<Thread*> yielding_;
  Fiber hub_;
  Failure failure_;
  std::map<std::uint64_t, std::vector<std::uint32_t>> reads_;  ///< by number of allocation
  bool portable_ = false;
  bool threads_idle_ = false;  ///< all of them finished their last block
};

/// The one emulated device. Whoever uses it holds `device_mutex()`.
extern Engine engine;
std::recursive_mutex& device_mutex();

}  // namespace sorot::inline v0::emulator
