#include "tests/machine/isa_kernels.h"

#include "cuda/machine/isa.cuh"

namespace sorot::machine {
namespace {

struct Storage {
  std::uint32_t words[4 * kProbeThreads];
  std::uint32_t counter;
};

/// Through every kind of memory and back, in elements of T: a[] of the block, its elements in reverse order.
template <class T>
__device__ __forceinline__ void reverse_elements(const ProbeParams& p, Storage& s) {
  constexpr unsigned kElements = kProbeThreads * 4 / sizeof(T);
  const unsigned t = thread_index().x;
  const unsigned first = block_index().x * kElements;
  T* elements = reinterpret_cast<T*>(s.words);
  for (unsigned e = t; e < kElements; e += kProbeThreads) {
    store_shared(elements + e, load_global(reinterpret_cast<const T*>(p.a) + first + e));
  }
  sync_block();
  for (unsigned e = t; e < kElements; e += kProbeThreads) {
    store_global(reinterpret_cast<T*>(p.out) + first + e, load_shared(elements + kElements - 1 - e));
  }
}

/// What the threads of a block did to one counter, told by thread 0.
__device__ __forceinline__ std::uint32_t read_counter(Storage& s) {
  sync_block();
  return load_shared(&s.counter);
}

__device__ __forceinline__ std::uint32_t answer(Probe probe, const ProbeParams& p, Storage& s, unsigned i) {
  const unsigned t = thread_index().x;
  const std::uint32_t a = load_global(p.a + i);
  const std::uint32_t b = load_global(p.b + i);
  const std::uint32_t c = load_global(p.c + i);
  const float x = bits_as<float>(a);
  const bool odd = a % 2 != 0;
  switch (probe) {
    case Probe::thread_and_block_index: return t + 1000 * block_index().x;
    case Probe::block_and_grid_size: return block_size().x + 1000 * grid_size().x + 7 * block_size().y * grid_size().z;
    case Probe::sync_block:
      store_shared(&s.words[t], a);
      sync_block();
      return load_shared(&s.words[kProbeThreads - 1 - t]);
    case Probe::sync_block_or: return sync_block_or(a == 0) ? 1 : 0;
    case Probe::sync_warp:
      store_shared(&s.words[t], a);
      sync_warp();
      return load_shared(&s.words[t ^ 31]);
    case Probe::sync_named:  // warp 0 tells warp 1, which answers
      if (t < 32) {
        store_shared(&s.words[t], a);
        arrive_named(1, kProbeThreads);
        sync_named(2, kProbeThreads);
        return load_shared(&s.words[32 + t]);
      }
      sync_named(1, kProbeThreads);
      store_shared(&s.words[t], load_shared(&s.words[t - 32]) + a);
      arrive_named(2, kProbeThreads);
      return a;
    case Probe::spin_wait:  // out[] of a block's last thread is its flag
      if (t == kProbeThreads - 1) {
        fence_device();
        atomic_exchange_global(p.out + i, a);
        return a;
      }
      spin_wait([&] { return atomic_compare_exchange_global(p.out + i - t + kProbeThreads - 1, 0U, 0U) != 0; });
      return a;
    case Probe::fences:
      fence_block();
      fence_device();
      return a;
    case Probe::shuffle: return shuffle(a, b % 32);
    case Probe::shuffle_xor: return shuffle_xor(a, 5);
    case Probe::shuffle_up: return shuffle_up(a, 3);
    case Probe::shuffle_down: return shuffle_down(a, 3);
    case Probe::shuffle_in_half_a_warp: return shuffle_xor(a, 9, t % 32 < 16 ? 0x0000'FFFF : 0xFFFF'0000);
    case Probe::ballot: return ballot(odd);
    case Probe::any: return any(odd) ? 1 : 0;
    case Probe::all: return all(odd) ? 1 : 0;
    case Probe::atomic_add_shared: atomic_add_shared(&s.counter, a); return read_counter(s);
    case Probe::atomic_max_shared:
      atomic_max_shared(reinterpret_cast<int*>(&s.counter), static_cast<int>(a >> 1));
      return read_counter(s);
    case Probe::atomic_add_global: atomic_add_global(p.out + b % kProbeThreads, c); return 0;
    case Probe::atomic_add_float: atomic_add_global(reinterpret_cast<float*>(p.out), 1.0F); return 0;
    case Probe::atomic_max_global: atomic_max_global(p.out + b % kProbeThreads, c); return 0;
    case Probe::atomic_exchange_global: return atomic_exchange_global(p.out + i, a);
    case Probe::atomic_compare_exchange_global: return atomic_compare_exchange_global(p.out + i, odd ? 0U : 1U, a);
    case Probe::bits_as: return bits_as<std::uint32_t>(x);
    case Probe::to_float_f32: return bits_as<std::uint32_t>(to_float(x));
    case Probe::to_float_f16: return bits_as<std::uint32_t>(to_float(bits_as<float16>(static_cast<std::uint16_t>(a))));
    case Probe::to_float_bf16:
      return bits_as<std::uint32_t>(to_float(bits_as<bfloat16>(static_cast<std::uint16_t>(a))));
    case Probe::from_float_f32: return bits_as<std::uint32_t>(from_float<float>(x));
    case Probe::from_float_f16: return bits_as<std::uint16_t>(from_float<float16>(x));
    case Probe::from_float_bf16: return bits_as<std::uint16_t>(from_float<bfloat16>(x));
    case Probe::from_floats_f16: return from_floats<float16>(x, bits_as<float>(b));
    case Probe::from_floats_bf16: return from_floats<bfloat16>(x, bits_as<float>(b));
    case Probe::keep: return keep(a);
    case Probe::fma: return bits_as<std::uint32_t>(machine::fma(x, bits_as<float>(b), bits_as<float>(c)));
    case Probe::max: return bits_as<std::uint32_t>(machine::max(x, bits_as<float>(b)));
    case Probe::log: return bits_as<std::uint32_t>(machine::log(x));
    case Probe::tanh: return bits_as<std::uint32_t>(machine::tanh(x));
    case Probe::reciprocal_approx: return bits_as<std::uint32_t>(reciprocal_approx(x));
    case Probe::exp2_approx: return bits_as<std::uint32_t>(exp2_approx(x));
    default: return 0;
  }
}

/// Probes of atomics and of whole elements leave `out` to themselves.
template <Probe kProbe>
__global__ void __launch_bounds__(kProbeThreads) probe_kernel(const __grid_constant__ ProbeParams p) {
  Storage& s = shared<Storage>();
  const unsigned t = thread_index().x;
  if (t == 0) store_shared(&s.counter, 0U);
  sync_block();
  if constexpr (kProbe == Probe::memory_1) return reverse_elements<std::uint8_t>(p, s);
  if constexpr (kProbe == Probe::memory_2) return reverse_elements<std::uint16_t>(p, s);
  if constexpr (kProbe == Probe::memory_4) return reverse_elements<std::uint32_t>(p, s);
  if constexpr (kProbe == Probe::memory_8) return reverse_elements<Float2>(p, s);
  if constexpr (kProbe == Probe::memory_16) return reverse_elements<Word4>(p, s);
  const unsigned i = block_index().x * kProbeThreads + t;
  const std::uint32_t result = answer(kProbe, p, s, i);
  constexpr bool kKeeps = kProbe == Probe::atomic_add_global || kProbe == Probe::atomic_add_float ||
                          kProbe == Probe::atomic_max_global || kProbe == Probe::spin_wait;
  if constexpr (kProbe == Probe::atomic_exchange_global || kProbe == Probe::atomic_compare_exchange_global) {
    // What was there before, and what is there now, in one word: both are small.
    store_global(p.out + i, load_global(p.out + i) * 1000 + result);
  } else if constexpr (!kKeeps) {
    store_global(p.out + i, result);
  } else if (kProbe == Probe::spin_wait && t != kProbeThreads - 1) {
    store_global(p.out + i, result);
  }
}

template <Probe kProbe>
Status launch_one(Probe probe, unsigned blocks, const ProbeParams& params, Stream stream) {
  if (probe == kProbe) {
    return launch({"probe_kernel", {blocks}, {kProbeThreads}, sizeof(Storage), stream}, probe_kernel<kProbe>, params);
  }
  if constexpr (kProbe == kLastProbe) {
    return {StatusCode::kInternal, "there is no such probe"};
  } else {
    return launch_one<static_cast<Probe>(static_cast<int>(kProbe) + 1)>(probe, blocks, params, stream);
  }
}

}  // namespace

Status launch_probe(Probe probe, unsigned blocks, const ProbeParams& params, Stream stream) {
  return launch_one<Probe::thread_and_block_index>(probe, blocks, params, stream);
}

}  // namespace sorot::machine
