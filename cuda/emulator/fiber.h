#pragma once

#include <ucontext.h>

#include <cstddef>

namespace sorot::inline v0::emulator {

/// A function's own stack, and a way to leave it in the middle and come back. Two implementations: 12 instructions of
/// x86-64 (9 ns a switch), and ucontext for everything else (300 to 600 ns: two system calls).
class Fiber {
 public:
  using Entry = void (*)();  ///< never returns

  Fiber() = default;  ///< the thread's own stack, once it has switched away
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Gives it a stack, if it has none, and makes it begin at `entry`; `number` spreads stacks over cache sets. What ran
  /// on it before is forgotten. False if there is no memory for a stack.
  bool restart(Entry entry, unsigned number, bool portable);

  /// Leaves `from`, which must be what runs now, and goes on with `to`. Both of one implementation.
  static void switch_to(Fiber& from, Fiber& to, bool portable);

  /// The first thing an entry does.
  static void arrive() { arrive(nullptr); }

  bool has_stack() const { return mapping_ != nullptr; }

 private:
  static void arrive(void* fake_stack);

  void* stack_pointer_ = nullptr;
  ucontext_t context_ = {};
  void* mapping_ = nullptr;
  const void* stack_ = nullptr;  ///< lowest byte
  std::size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;  ///< AddressSanitizer's
};

}  // namespace sorot::inline v0::emulator
