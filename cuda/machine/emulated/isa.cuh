#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda/emulator/device.h"
#include "cuda/machine/types.h"
#include "sorot/dtype.h"

/// The instructions of the real machine in plain C++. See cuda/machine/isa.cuh.

// CUDA's spelling of a kernel.
#define __global__                                             // lint-allow(naming): CUDA's word
#define __device__                                             // lint-allow(naming): CUDA's word
#define __forceinline__ inline __attribute__((always_inline))  // lint-allow(naming): CUDA's word
#define __launch_bounds__(...)                                 // lint-allow(naming): CUDA's word
#define __grid_constant__                                      // lint-allow(naming): CUDA's word

namespace sorot::inline v0::machine {

// ---- Indices

__device__ __forceinline__ Index3 thread_index() { return emulator::engine.current->index; }
__device__ __forceinline__ Index3 block_index() { return emulator::engine.block; }
__device__ __forceinline__ Index3 block_size() {
  const auto& size = emulator::engine.request->record.block;
  return {size[0], size[1], size[2]};
}
__device__ __forceinline__ Index3 grid_size() {
  const auto& size = emulator::engine.request->record.grid;
  return {size[0], size[1], size[2]};
}

// ---- Barriers and fences

__device__ __forceinline__ void sync_block(Site site = Site::here()) { emulator::sync_block(site); }
__device__ __forceinline__ bool sync_block_or(bool predicate, Site site = Site::here()) {
  return emulator::sync_block_or(predicate, site);
}
__device__ __forceinline__ void sync_warp(unsigned mask = kFullWarp, Site site = Site::here()) {
  emulator::sync_warp(mask, site);
}
__device__ __forceinline__ void sync_named(unsigned barrier, unsigned threads, Site site = Site::here()) {
  emulator::sync_named(barrier, threads, site);
}
__device__ __forceinline__ void arrive_named(unsigned barrier, unsigned threads, Site site = Site::here()) {
  emulator::arrive_named(barrier, threads, site);
}
__device__ __forceinline__ void fence_block() {}  // memory is sequentially consistent
__device__ __forceinline__ void fence_device() {}

template <class Condition>
__device__ __forceinline__ void spin_wait(Condition condition, Site site = Site::here()) {
  emulator::spin_wait(condition, site);
}

// ---- Across the lanes of a warp. T has 4 bytes.

template <class T>
__device__ __forceinline__ T shuffle(T value, unsigned lane, unsigned mask = kFullWarp, Site site = Site::here()) {
  return std::bit_cast<T>(
      emulator::shuffle(emulator::Shuffle::index, "shuffle", std::bit_cast<std::uint32_t>(value), lane, mask, site));
}
template <class T>
__device__ __forceinline__ T shuffle_xor(T value, unsigned lanes, unsigned mask = kFullWarp, Site site = Site::here()) {
  return std::bit_cast<T>(emulator::shuffle(emulator::Shuffle::exclusive_or, "shuffle_xor",
                                            std::bit_cast<std::uint32_t>(value), lanes, mask, site));
}
template <class T>
__device__ __forceinline__ T shuffle_up(T value, unsigned lanes, unsigned mask = kFullWarp, Site site = Site::here()) {
  return std::bit_cast<T>(
      emulator::shuffle(emulator::Shuffle::up, "shuffle_up", std::bit_cast<std::uint32_t>(value), lanes, mask, site));
}
template <class T>
__device__ __forceinline__ T shuffle_down(T value, unsigned lanes, unsigned mask = kFullWarp,
                                          Site site = Site::here()) {
  return std::bit_cast<T>(emulator::shuffle(emulator::Shuffle::down, "shuffle_down",
                                            std::bit_cast<std::uint32_t>(value), lanes, mask, site));
}
__device__ __forceinline__ unsigned ballot(bool predicate, unsigned mask = kFullWarp, Site site = Site::here()) {
  return emulator::vote("ballot", predicate, mask, site);
}
__device__ __forceinline__ bool any(bool predicate, unsigned mask = kFullWarp, Site site = Site::here()) {
  return emulator::vote("any", predicate, mask, site) != 0;
}
__device__ __forceinline__ bool all(bool predicate, unsigned mask = kFullWarp, Site site = Site::here()) {
  return emulator::vote("all", predicate, mask, site) == mask;
}

// ---- Memory. T has 1, 2, 4, 8 or 16 bytes and is aligned to them; one instruction each.

/// The block's dynamic shared memory.
template <class Storage>
__device__ __forceinline__ Storage& shared(Site site = Site::here()) {
  return *static_cast<Storage*>(emulator::shared_memory(sizeof(Storage), site));
}

template <class T>
__device__ __forceinline__ T load_shared(const T* address, Site site = Site::here()) {
  emulator::check_shared(address, sizeof(T), emulator::Access::read, "load_shared", site);
  return *address;
}
template <class T>
__device__ __forceinline__ void store_shared(T* address, T value, Site site = Site::here()) {
  emulator::check_shared(address, sizeof(T), emulator::Access::write, "store_shared", site);
  *address = value;
}
template <class T>
__device__ __forceinline__ T load_global(const T* address, Site site = Site::here()) {
  emulator::check_global(address, sizeof(T), emulator::Access::read, "load_global", site);
  return *address;
}
template <class T>
__device__ __forceinline__ void store_global(T* address, T value, Site site = Site::here()) {
  emulator::check_global(address, sizeof(T), emulator::Access::write, "store_global", site);
  *address = value;
}

// ---- Atomics on 4-byte numbers; they return the value before.

template <class T>
__device__ __forceinline__ T atomic_add_shared(T* address, T value, Site site = Site::here()) {
  emulator::check_shared(address, sizeof(T), emulator::Access::atomic, "atomic_add_shared", site);
  const T before = *address;
  *address = before + value;
  return before;
}
template <class T>
__device__ __forceinline__ T atomic_add_global(T* address, T value, Site site = Site::here()) {
  emulator::check_global(address, sizeof(T), emulator::Access::atomic, "atomic_add_global", site);
  const T before = *address;
  *address = before + value;
  return before;
}
template <class T>
__device__ __forceinline__ T atomic_max_shared(T* address, T value, Site site = Site::here()) {
  emulator::check_shared(address, sizeof(T), emulator::Access::atomic, "atomic_max_shared", site);
  const T before = *address;
  *address = before < value ? value : before;
  return before;
}
template <class T>
__device__ __forceinline__ T atomic_max_global(T* address, T value, Site site = Site::here()) {
  emulator::check_global(address, sizeof(T), emulator::Access::atomic, "atomic_max_global", site);
  const T before = *address;
  *address = before < value ? value : before;
  return before;
}
template <class T>
__device__ __forceinline__ T atomic_exchange_global(T* address, T value, Site site = Site::here()) {
  emulator::check_global(address, sizeof(T), emulator::Access::atomic, "atomic_exchange_global", site);
  const T before = *address;
  *address = value;
  return before;
}
template <class T>
__device__ __forceinline__ T atomic_compare_exchange_global(T* address, T expected, T value, Site site = Site::here()) {
  emulator::check_global(address, sizeof(T), emulator::Access::atomic, "atomic_compare_exchange_global", site);
  const T before = *address;
  if (before == expected) *address = value;
  return before;
}

// ---- Registers

/// The same bits as another type of the same size.
template <class To, class From>
__device__ __forceinline__ To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(float16 x) { return static_cast<float>(x); }
__device__ __forceinline__ float to_float(bfloat16 x) { return static_cast<float>(x); }

/// Nearest even; overflow gives an infinity, NaN stays NaN, subnormals are kept.
template <class T>
__device__ __forceinline__ T from_float(float x) {
  return static_cast<T>(x);
}

// ---- Arithmetic

__device__ __forceinline__ float fma(float a, float b, float c) { return std::fma(a, b, c); }
__device__ __forceinline__ float max(float a, float b) {
  return std::fmax(a, b);
}  ///< of a number and a NaN: the number
__device__ __forceinline__ float log(float x) { return std::log(x); }
__device__ __forceinline__ float tanh(float x) { return std::tanh(x); }

/// 2^x with a relative error of at most 2^-22.5; subnormal x and results are 0.
__device__ __forceinline__ float exp2_approx(float x) {
  const float operand = emulator::flushed(x);
  if (operand == 0) return 1;
  if (!std::isfinite(operand)) return std::exp2(operand);  // 0, infinity, NaN
  constexpr double kBound = 0x1p-22 * 0.70710678118654752;
  return emulator::flushed(emulator::perturbed(std::exp2(static_cast<double>(operand)), kBound, 1, operand));
}

}  // namespace sorot::inline v0::machine
