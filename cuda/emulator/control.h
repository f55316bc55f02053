#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

struct CUstream_st;

/// What tests and tools may ask of the emulated device. There is one, shared by the process; calls are serialised.
namespace sorot::inline v0::emulator {

/// Which of the threads that could run runs next, and which block comes next.
enum class Order : std::uint8_t { forward, reverse, random };

/// When an asynchronous copy lands: as it is asked for, when its thread waits for it, or either by seed.
enum class Copies : std::uint8_t { eager, lazy, random };

/// What goes with an order of threads, unless something else is asked for.
constexpr Copies copies_of(Order order) {
  return order == Order::forward ? Copies::lazy : order == Order::reverse ? Copies::eager : Copies::random;
}

/// Devices one can have, by compute capability.
inline constexpr int kProfiles[] = {75, 80, 86, 90, 100, 120};

struct Settings {
  int profile = 90;  ///< one of kProfiles
  Order order = Order::forward;
  std::uint64_t seed = 0;        ///< of what is random
  std::optional<Copies> copies;  ///< none: copies_of(order)
  std::uint64_t error_seed = 0;  ///< of the errors of approximate instructions
  bool race = false;             ///< report accesses to memory that nothing orders
  bool count = false;            ///< count memory accesses, bank conflicts, sectors, matrix products
  bool portable_fibers = false;  ///< switch threads by ucontext instead of x86-64 code
};

Settings settings();

/// Throws std::invalid_argument for a profile that is none.
void apply(const Settings& settings);

/// Settings while it lives.
class Scoped {
 public:
  explicit Scoped(const Settings& wanted) : before_(settings()) { apply(wanted); }
  ~Scoped() { apply(before_); }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;

 private:
  Settings before_;
};

/// One launch that ran, in order.
struct LaunchRecord {
  std::string kernel;
  CUstream_st* stream = nullptr;
  unsigned grid[3] = {};
  unsigned block[3] = {};
  std::size_t shared_bytes = 0;
};
std::vector<LaunchRecord> launches();
void clear_launches();

/// The whole last report (a Status holds its beginning); empty if there was none.
std::string last_report();

/// Memory traffic of one kernel at one line of source. A request is what one warp asks for at once; of instructions
/// that access no memory ("mma_m16n8k16") there are only requests.
struct AccessCount {
  std::string kernel;
  std::string instruction;  ///< "load_global"; "cp_async" reads global memory, "cp_async shared" writes shared memory
  std::string file;         ///< name only
  int line = 0;
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
  std::uint64_t transactions = 0;        ///< 32-byte sectors (global) or bank wavefronts (shared)
  std::uint64_t ideal_transactions = 0;  ///< the fewest that could carry the bytes
};

/// Since clear_counts(), while Settings::count was on; sorted by kernel, file, line, instruction.
std::vector<AccessCount> counts();
void clear_counts();

/// How often the emulator went from one thread to another since clear_counts().
std::uint64_t switches();

/// How many times each byte of a range of device memory was read since clear_counts(), while Settings::count was on.
std::vector<std::uint32_t> reads_of(const void* device_memory, std::size_t bytes);

/// Allocations that are alive, and their bytes.
struct MemoryUse {
  std::size_t allocations = 0;
  std::size_t bytes = 0;
};
MemoryUse memory_use();

}  // namespace sorot::inline v0::emulator
