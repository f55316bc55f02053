#include "cuda/emulator/engine.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace sorot::inline v0::emulator {

Engine engine;

std::recursive_mutex& device_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

namespace {

constexpr std::size_t kPage = 4096;
constexpr unsigned char kRedZone = 0xA5;

std::string text_of(const unsigned (&size)[3]) {
  char text[40];
  std::snprintf(text, sizeof text, "(%u, %u, %u)", size[0], size[1], size[2]);
  return text;
}

bool exceeds(const unsigned (&size)[3], const unsigned (&most)[3]) {
  return size[0] > most[0] || size[1] > most[1] || size[2] > most[2];
}

bool has_zero(const unsigned (&size)[3]) { return size[0] == 0 || size[1] == 0 || size[2] == 0; }

/// "0-31, 64" from sorted numbers.
std::string ranges(const std::vector<unsigned>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t j = i;
    while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1) ++j;
    if (!text.empty()) text += ", ";
    text += std::to_string(numbers[i]);
    if (j > i) text.append("-").append(std::to_string(numbers[j]));
    i = j + 1;
  }
  return text;
}

}  // namespace

Engine::~Engine() {
  if (shared != nullptr) munmap(shared - kPage, kSharedArena + 2 * kPage);
}

std::string Engine::place(Site site) const { return std::string(site.file_name()) + ":" + std::to_string(site.line); }

std::string Engine::who() const {
  const unsigned index[] = {block.x, block.y, block.z};
  return std::string("kernel ") + request->kernel + ", block " + text_of(index) + ", thread " +
         std::to_string(current->number) + " (warp " + std::to_string(current->warp->number) + ", lane " +
         std::to_string(current->lane) + ")";
}

// ---- Launches

/// What CUDA refuses before a thread runs.
Failure Engine::check(const LaunchRequest& wanted) const {
  const LaunchRecord& r = wanted.record;
  const Profile& profile = *find_profile(settings.profile);
  const std::string head = std::string("launch of ") + wanted.kernel + " at " + place(wanted.site) + ": ";
  const unsigned long long threads = 1ULL * r.block[0] * r.block[1] * r.block[2];
  if (has_zero(r.grid) || exceeds(r.grid, kMostGridSize)) {
    return {kErrorInvalidConfiguration,
            head + "grid is " + text_of(r.grid) + ", expected 1.." + text_of(kMostGridSize) + " blocks"};
  }
  if (has_zero(r.block) || exceeds(r.block, kMostBlockSize) || threads > kMostThreads) {
    return {kErrorInvalidConfiguration, head + "block is " + text_of(r.block) + ", expected 1.." +
                                            text_of(kMostBlockSize) + " and at most " + std::to_string(kMostThreads) +
                                            " threads"};
  }
  if (r.shared_bytes > static_cast<std::size_t>(profile.shared_bytes_per_block)) {
    return {kErrorInvalidValue, head + "a block asks for " + std::to_string(r.shared_bytes) +
                                    " bytes of shared memory, but sm_" + std::to_string(settings.profile) +
                                    " has at most " + std::to_string(profile.shared_bytes_per_block)};
  }
  return {};
}

Failure Engine::prepare_threads(unsigned count) {
  while (threads_.size() < count) threads_.push_back(std::make_unique<Thread>());
  const bool restart = !threads_idle_ || portable_ != settings.portable_fibers;
  portable_ = settings.portable_fibers;
  for (unsigned n = 0; n < threads_.size(); ++n) {
    Fiber& fiber = threads_[n]->fiber;
    if ((restart || !fiber.has_stack()) && !fiber.restart(fiber_main, n, portable_)) {
      return {kErrorMemoryAllocation, "no memory for the stacks of the threads"};
    }
  }
  if (shared == nullptr) {
    void* mapping = mmap(nullptr, kSharedArena + 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) return {kErrorMemoryAllocation, "no memory for shared memory"};
    mprotect(mapping, kPage, PROT_NONE);
    mprotect(static_cast<std::byte*>(mapping) + kPage + kSharedArena, kPage, PROT_NONE);
    shared = static_cast<std::byte*>(mapping) + kPage;
    std::memset(shared, kRedZone, kSharedArena);
  }
  thread_count_ = count;
  return {};
}

Failure Engine::launch(const LaunchRequest& wanted) {
  if (Failure f = check(wanted)) return f;
  const LaunchRecord& r = wanted.record;
  if (Failure f = prepare_threads(r.block[0] * r.block[1] * r.block[2])) return f;
  request = &wanted;
  shared_bytes = r.shared_bytes;
  observed = settings.race || settings.count;
  random_state_ = settings.seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019;
  counters.begin_kernel(wanted.kernel);
  if (settings.race) race.begin_launch();
  memory.open(true);

  const std::uint64_t blocks = std::uint64_t{r.grid[0]} * r.grid[1] * r.grid[2];
  Failure failure;
  // A random order of blocks is a walk by a step that shares no factor with their number.
  std::uint64_t step = 1;
  if (settings.order == Order::random) {
    do step = random() % blocks + 1;
    while (std::gcd(step, blocks) != 1);
  }
  std::uint64_t next = settings.order == Order::random ? random() % blocks : 0;
  for (std::uint64_t n = 0; n < blocks && !failure; ++n) {
    const std::uint64_t b = settings.order == Order::reverse ? blocks - 1 - n : next;
    next = (next + step) % blocks;
    block = {static_cast<unsigned>(b % r.grid[0]), static_cast<unsigned>(b / r.grid[0] % r.grid[1]),
             static_cast<unsigned>(b / r.grid[0] / r.grid[1])};
    failure = run_block();
  }
  if (!failure) failure = check_red_zone(kSharedArena);
  std::memset(shared, kRedZone, shared_bytes);
  if (!failure) {
    const std::string damage = memory.damage();
    if (!damage.empty()) {
      failure = {kErrorIllegalAddress, std::string("kernel ") + wanted.kernel + " launched at " + place(wanted.site) +
                                           ": " + damage + " by an access that is no load or store of the machine"};
    }
  }
  memory.open(false);
  current = nullptr;
  request = nullptr;
  return failure;
}

// ---- Blocks

void Engine::start_block() {
  const LaunchRecord& r = request->record;
  std::memset(shared, kPoison, shared_bytes);
  for (Barrier& barrier : barriers) barrier = Barrier();
  spinning_.clear();
  yielding_.clear();
  progress = 1;
  progress_at_spin_ = 0;
  live = thread_count_;
  ready_warps_ = 0;
  for (unsigned w = 0; w < kWarps; ++w) {
    warps[w].number = w;
    warps[w].ready = warps[w].live = 0;
    warps[w].open.clear();
  }
  for (unsigned n = 0; n < thread_count_; ++n) {
    Thread& t = *threads_[n];
    t.number = n;
    t.index = {n % r.block[0], n / r.block[0] % r.block[1], n / r.block[0] / r.block[1]};
    t.warp = &warps[n / machine::kWarpSize];
    t.lane = n % machine::kWarpSize;
    t.warp->lanes[t.lane] = &t;
    t.warp->live |= 1U << t.lane;
    t.copies.clear();
    t.committed = 0;
    make_ready(t);
  }
  if (settings.race) race.begin_block(block, thread_count_);
}

Failure Engine::run_block() {
  start_block();
  failure_ = {};
  while (live > 0 && !failure_) {
    Thread* next = pick();
    if (next == nullptr && (release_yielding() || release_spinners())) next = pick();
    if (next == nullptr) {
      const unsigned index[] = {block.x, block.y, block.z};
      failure_ = {kErrorLaunchTimeout, std::string("deadlock in kernel ") + request->kernel + ", block " +
                                           text_of(index) + ": no thread can run\n" + table()};
      break;
    }
    current = next;
    go_to(hub_, next->fiber);
  }
  threads_idle_ = !failure_;
  if (failure_) return failure_;
  if (settings.count) counters.end_block();
  constexpr std::size_t kNearby = 512;
  return check_red_zone(kNearby);
}

/// The bytes behind the block's shared memory must be as they were.
Failure Engine::check_red_zone(std::size_t bytes) const {
  std::byte* const end = shared + std::min(shared_bytes + bytes, kSharedArena);
  std::byte* const begin = shared + shared_bytes;
  // All bytes are equal if each equals its neighbour: memcmp looks at many at a time.
  if (*begin == std::byte{kRedZone} && std::memcmp(begin, begin + 1, static_cast<std::size_t>(end - begin) - 1) == 0) {
    return {};
  }
  const std::byte* const hit = std::find_if(begin, end, [](std::byte b) { return b != std::byte{kRedZone}; });
  const unsigned index[] = {block.x, block.y, block.z};
  const std::string what = std::string("kernel ") + request->kernel + " launched at " + place(request->site) +
                           ", block " + text_of(index) + ": shared memory + " + std::to_string(hit - shared) +
                           " was written, but the block has only " + std::to_string(shared_bytes) +
                           " bytes, by an access that is no load or store of the machine";
  std::memset(shared, kRedZone, kSharedArena);
  return {kErrorIllegalAddress, what};
}

// ---- Threads

/// A fiber runs its thread's part of one block after the other.
void Engine::fiber_main() {
  Fiber::arrive();
  for (;;) {
    try {
      engine.request->body();
      engine.end_thread();
    } catch (const Failure& failure) {
      engine.failure_ = failure;
    }
    if (engine.failure_) engine.stop(engine.failure_);
  }
}

/// Nobody comes back to this thread.
void Engine::stop(const Failure& failure) {
  failure_ = failure;
  go_to(current->fiber, hub_);
  std::abort();
}

void Engine::end_thread() {
  Thread& me = *current;
  const unsigned bit = 1U << me.lane;
  for (const Collective& open : me.warp->open) {
    if ((open.mask & bit) != 0) {
      fail(kErrorLaunchFailure, who() + " has exited, but " + open.instruction + " at " + place(open.site) +
                                    " names its lane in the mask and waits for it");
    }
  }
  if (!me.copies.empty()) {
    fail(kErrorLaunchFailure,
         who() + " has exited, but has not waited for its cp_async at " + place(me.copies.front().site));
  }
  me.state = Thread::State::done;
  me.warp->live &= ~bit;
  --live;
  ++progress;
  if (barriers[0].arrived > 0 && barriers[0].arrived == live) complete(barriers[0]);
  go_on(me);
}

void Engine::complete(Barrier& barrier) {
  ++progress;
  const unsigned result = barrier.any ? 1 : 0;
  current->result = result;
  for (Thread* thread : barrier.waiting) {
    thread->result = result;
    if (settings.race) race.acquire(thread->number, barrier.clock);
    if (thread != current) make_ready(*thread);
  }
  barrier.arrived = barrier.expected = 0;
  barrier.any = false;
  barrier.waiting.clear();
  barrier.clock.clear();
}

void Engine::count_read(const Allocation& allocation, std::uintptr_t address, std::size_t bytes) {
  std::vector<std::uint32_t>& counts = reads_[allocation.number];
  counts.resize(allocation.bytes);
  for (std::size_t byte = 0; byte < bytes; ++byte) ++counts[address - allocation.begin + byte];
}

std::vector<std::uint32_t> Engine::reads(const void* address, std::size_t bytes) const {
  const Allocation* allocation = memory.find(address, bytes);
  std::vector<std::uint32_t> counts(bytes, 0);
  if (allocation == nullptr) return counts;
  const auto found = reads_.find(allocation->number);
  if (found == reads_.end()) return counts;
  const auto first = reinterpret_cast<std::uintptr_t>(address) - allocation->begin;
  std::copy_n(found->second.begin() + static_cast<std::ptrdiff_t>(first), bytes, counts.begin());
  return counts;
}

void Engine::make_ready(Thread& thread) {
  thread.state = Thread::State::ready;
  thread.warp->ready |= 1U << thread.lane;
  ready_warps_ |= 1U << thread.warp->number;
}

std::uint64_t Engine::random() {
  random_state_ ^= random_state_ << 13;
  random_state_ ^= random_state_ >> 7;
  random_state_ ^= random_state_ << 17;
  return random_state_ * 0x2545F4914F6CDD1D;
}

/// The thread that runs next, taken from those that can; null if none can.
Thread* Engine::pick() {
  if (ready_warps_ == 0) return nullptr;
  unsigned w = 0;
  unsigned lane = 0;
  switch (settings.order) {
    case Order::forward:
      w = static_cast<unsigned>(std::countr_zero(ready_warps_));
      lane = static_cast<unsigned>(std::countr_zero(warps[w].ready));
      break;
    case Order::reverse:
      w = 31U - static_cast<unsigned>(std::countl_zero(ready_warps_));
      lane = 31U - static_cast<unsigned>(std::countl_zero(warps[w].ready));
      break;
    case Order::random: {
      // Mostly stay in one warp, so that warps drift far apart.
      const std::uint64_t dice = random();
      w = last_warp_;
      if ((ready_warps_ >> w & 1) == 0 || (dice & 127) == 0) {
        const auto turn = static_cast<int>(dice >> 8 & 31);
        w = (static_cast<unsigned>(std::countr_zero(std::rotr(ready_warps_, turn))) + static_cast<unsigned>(turn)) & 31;
      }
      last_warp_ = w;
      const auto turn = static_cast<int>(dice >> 40 & 31);
      lane =
          (static_cast<unsigned>(std::countr_zero(std::rotr(warps[w].ready, turn))) + static_cast<unsigned>(turn)) & 31;
      break;
    }
  }
  Warp& warp = warps[w];
  warp.ready &= ~(1U << lane);
  if (warp.ready == 0) ready_warps_ &= ~(1U << w);
  return warp.lanes[lane];
}

/// Leaves a thread that cannot go on, for one that can, or for the hub if there is none.
void Engine::go_on(Thread& from) {
  Thread* next = pick();
  if (next == &from) return;
  if (next != nullptr) {
    current = next;
    go_to(from.fiber, next->fiber);
  } else {
    go_to(from.fiber, hub_);
  }
}

void Engine::go_to(Fiber& from, Fiber& to) {
  ++switches;
  Fiber::switch_to(from, to, portable_);
}

void Engine::wait(const char* instruction, Site site) {
  Thread& me = *current;
  me.state = Thread::State::waiting;
  me.instruction = instruction;
  me.site = site;
  go_on(me);
}

void Engine::spin(Site site) {
  Thread& me = *current;
  me.state = Thread::State::spinning;
  me.instruction = "spin_wait";
  me.site = site;
  spinning_.push_back(&me);
  go_on(me);
}

void Engine::yield(const char* instruction, Site site) {
  Thread& me = *current;
  me.state = Thread::State::yielding;
  me.instruction = instruction;
  me.site = site;
  yielding_.push_back(&me);
  go_on(me);
}

bool Engine::release_yielding() {
  if (yielding_.empty()) return false;
  for (Thread* thread : yielding_) make_ready(*thread);
  yielding_.clear();
  return true;
}

/// Lets spinning threads look again, unless nothing has happened since they last did.
bool Engine::release_spinners() {
  if (spinning_.empty() || progress_at_spin_ == progress) return false;
  progress_at_spin_ = progress;
  for (Thread* thread : spinning_) make_ready(*thread);
  spinning_.clear();
  return true;
}

void Engine::fail(int code, const std::string& report) {
  throw Failure{code, report};  // caught at the bottom of the thread's own stack
}

std::string Engine::table() const {
  struct Line {
    std::string where;
    std::vector<unsigned> threads;
  };
  std::vector<Line> lines;
  std::vector<unsigned> exited;
  for (unsigned n = 0; n < thread_count_; ++n) {
    const Thread& t = *threads_[n];
    if (t.state == Thread::State::done) {
      exited.push_back(n);
      continue;
    }
    if (t.state == Thread::State::ready) continue;
    const std::string where = std::string(t.instruction) + " at " + place(t.site);
    auto line = std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.where == where; });
    if (line == lines.end()) line = lines.insert(line, {where, {}});
    line->threads.push_back(n);
  }
  std::string text;
  for (const Line& line : lines) text += "  threads " + ranges(line.threads) + " wait in " + line.where + "\n";
  if (!exited.empty()) text += "  threads " + ranges(exited) + " have exited\n";
  for (const Warp& warp : warps) {
    for (const Collective& open : warp.open) {
      std::vector<unsigned> missing;
      for (unsigned lane = 0; lane < machine::kWarpSize; ++lane) {
        if (((open.mask & ~open.arrived) >> lane & 1) != 0) missing.push_back(lane);
      }
      text += "  warp " + std::to_string(warp.number) + ": " + open.instruction + " at " + place(open.site) +
              " misses lanes " + ranges(missing) + "\n";
    }
  }
  for (unsigned b = 0; b < kBarriers; ++b) {
    const Barrier& barrier = barriers[b];
    if (barrier.arrived == 0) continue;
    text += "  barrier " + std::to_string(b) + ": " + std::to_string(barrier.arrived) + " of " +
            std::to_string(b == 0 ? live : barrier.expected) + " threads have arrived\n";
  }
  return text;
}

}  // namespace sorot::inline v0::emulator
