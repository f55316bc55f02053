#include "tests/emulator/plain_access_kernels.h"

#include "cuda/machine/isa.cuh"

namespace sorot::inline v0::emulator {
namespace {

struct Words {
  int word[64];
};

}  // namespace

__global__ void stores_plainly(const PlainParams p) {
  Words& s = machine::shared<Words>();
  const unsigned t = machine::thread_index().x;
  s.word[t] = static_cast<int>(t);                                           // BUG: plain store
  machine::store_global(p.data + t, machine::load_shared(&s.word[63 - t]));  // BUG: load after it
}

__global__ void loads_plainly(const PlainParams p) {
  Words& s = machine::shared<Words>();
  const unsigned t = machine::thread_index().x;
  machine::store_shared(&s.word[t], 1);               // BUG: store before it
  machine::store_global(p.data + t, s.word[63 - t]);  // BUG: plain load
}

__global__ void stores_plainly_to_global(const PlainParams p) {
  const unsigned t = machine::thread_index().x;
  p.data[t] = 1;                                                            // BUG: plain global store
  static_cast<void>(machine::atomic_add_global(p.data + (t + 1) % 64, 1));  // BUG: atomic after it
}

__global__ void stores_plainly_too_far(const PlainParams) {
  Words& s = machine::shared<Words>();
  int* word = s.word + machine::thread_index().x;
  *(word + 1) = 1;  // BUG: plain store too far
}

/// Each thread's plain accesses are its own, or a barrier orders them; and wrappers are not taken for plain accesses.
__global__ void exchanges_plainly(const PlainParams p) {
  Words& s = machine::shared<Words>();
  const unsigned t = machine::thread_index().x;
  s.word[t] = p.data[t];
  machine::sync_block();
  const int other = s.word[63 - t];
  machine::sync_block();
  machine::atomic_add_shared(&s.word[63], 0);
  machine::sync_block();
  p.data[t] = other;
  machine::sync_block();
  machine::atomic_add_global(p.data + 5, 1);
  machine::atomic_max_global(p.data + 5, 0);
}

}  // namespace sorot::inline v0::emulator
