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
__device__ __forceinline__ void fence_device() { emulator::fence_device(); }

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

/// Where something lies in the block's shared memory, as instructions have it that take no pointer.
__device__ __forceinline__ std::uint32_t shared_address(const void* address, Site site = Site::here()) {
  return emulator::shared_address(address, site);
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
  return emulator::read_modify_write_shared(address, "atomic_add_shared", site, [&](T old) { return old + value; });
}
template <class T>
__device__ __forceinline__ T atomic_add_global(T* address, T value, Site site = Site::here()) {
  return emulator::read_modify_write_global(address, "atomic_add_global", site, [&](T old) { return old + value; });
}
template <class T>
__device__ __forceinline__ T atomic_max_shared(T* address, T value, Site site = Site::here()) {
  return emulator::read_modify_write_shared(address, "atomic_max_shared", site,
                                            [&](T old) { return old < value ? value : old; });
}
template <class T>
__device__ __forceinline__ T atomic_max_global(T* address, T value, Site site = Site::here()) {
  return emulator::read_modify_write_global(address, "atomic_max_global", site,
                                            [&](T old) { return old < value ? value : old; });
}
template <class T>
__device__ __forceinline__ T atomic_exchange_global(T* address, T value, Site site = Site::here()) {
  return emulator::read_modify_write_global(address, "atomic_exchange_global", site, [&](T) { return value; });
}
template <class T>
__device__ __forceinline__ T atomic_compare_exchange_global(T* address, T expected, T value, Site site = Site::here()) {
  return emulator::read_modify_write_global(address, "atomic_compare_exchange_global", site,
                                            [&](T old) { return old == expected ? value : old; });
}

// ---- Asynchronous copies. sm_80 and newer.

/// 16 bytes from global to shared memory, both aligned to 16.
__device__ __forceinline__ void cp_async(std::uint32_t to, const void* from, Site site = Site::here()) {
  emulator::cp_async(to, from, true, site);
}

/// The same, or 16 zero bytes where not `valid`: `from` is not read then, but is a legal address all the same.
__device__ __forceinline__ void cp_async_or_zero(std::uint32_t to, const void* from, bool valid,
                                                 Site site = Site::here()) {
  emulator::cp_async(to, from, valid, site);
}

/// Makes a group of the thread's copies since the last one.
__device__ __forceinline__ void cp_async_commit(Site site = Site::here()) { emulator::cp_async_commit(site); }

/// Until all groups of this thread but the `kPending` newest have landed. Others see them after a barrier.
template <int kPending>
__device__ __forceinline__ void cp_async_wait(Site site = Site::here()) {
  static_assert(kPending >= 0);
  emulator::cp_async_wait(kPending, site);
}

// ---- Tensor cores: the whole warp at once

/// Four 8x8 matrices of 2-byte elements. Lane l names row l % 8 of matrix l / 8: 16 bytes, aligned; it gets the
/// elements 2 (l % 4) and the next of row l / 4 of each matrix, or of its column l / 4 from `trans`.
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t row, std::uint32_t (&r)[4], Site site = Site::here()) {
  emulator::ldmatrix_x4("ldmatrix_x4", false, row, r, site);
}
__device__ __forceinline__ void ldmatrix_x4_trans(std::uint32_t row, std::uint32_t (&r)[4], Site site = Site::here()) {
  emulator::ldmatrix_x4("ldmatrix_x4_trans", true, row, r, site);
}

/// d += a b of 16x16 by 16x8 matrices of float16 or bfloat16, added up in f32. sm_80 and newer.
template <class T>
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                             std::uint32_t b1, Site site = Site::here()) {
  static_assert(std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>);
  emulator::mma_m16n8k16(std::is_same_v<T, float16> ? emulator::HalfType::f16 : emulator::HalfType::bf16, d, a, b0, b1,
                         site);
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

/// Two numbers as 2-byte T, each as by from_float; `low` in the lower half, which comes first in memory.
template <class T>
__device__ __forceinline__ std::uint32_t from_floats(float low, float high) {
  return std::uint32_t{from_float<T>(low).bits} | std::uint32_t{from_float<T>(high).bits} << 16;
}

/// The same number, which the compiler shall keep in a register instead of computing it again.
__device__ __forceinline__ std::uint32_t keep(std::uint32_t x) { return x; }

// ---- Arithmetic

__device__ __forceinline__ float fma(float a, float b, float c) { return std::fma(a, b, c); }
__device__ __forceinline__ float max(float a, float b) {
  return std::fmax(a, b);
}  ///< of a number and a NaN: the number
__device__ __forceinline__ float log(float x) { return std::log(x); }
__device__ __forceinline__ float tanh(float x) { return std::tanh(x); }

/// 1 / x with a relative error of at most 2^-23; subnormal x and results are 0.
__device__ __forceinline__ float reciprocal_approx(float x) {
  const float operand = emulator::flushed(x);
  if (operand == 0 || !std::isfinite(operand)) return 1 / operand;  // infinity, 0, NaN
  return emulator::flushed(emulator::perturbed(1 / static_cast<double>(operand), 0x1p-23, 2, operand));
}

/// 2^x with a relative error of at most 2^-22.5; subnormal x and results are 0.
__device__ __forceinline__ float exp2_approx(float x) {
  const float operand = emulator::flushed(x);
  if (operand == 0) return 1;
  if (!std::isfinite(operand)) return std::exp2(operand);  // 0, infinity, NaN
  constexpr double kBound = 0x1p-22 * 0.70710678118654752;
  return emulator::flushed(emulator::perturbed(std::exp2(static_cast<double>(operand)), kBound, 1, operand));
}

}  // namespace sorot::inline v0::machine
