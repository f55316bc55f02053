#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda/machine/types.h"
#include "sorot/dtype.h"

/// The instructions of the real machine. See cuda/machine/isa.cuh.
namespace sorot::inline v0::machine {

// ---- Indices

__device__ __forceinline__ Index3 thread_index() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
__device__ __forceinline__ Index3 block_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
__device__ __forceinline__ Index3 block_size() { return {blockDim.x, blockDim.y, blockDim.z}; }
__device__ __forceinline__ Index3 grid_size() { return {gridDim.x, gridDim.y, gridDim.z}; }

// ---- Barriers and fences

__device__ __forceinline__ void sync_block() { __syncthreads(); }
__device__ __forceinline__ bool sync_block_or(bool predicate) { return __syncthreads_or(predicate) != 0; }
__device__ __forceinline__ void sync_warp(unsigned mask = kFullWarp) { __syncwarp(mask); }
__device__ __forceinline__ void sync_named(unsigned barrier, unsigned threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ __forceinline__ void arrive_named(unsigned barrier, unsigned threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ __forceinline__ void fence_block() { __threadfence_block(); }
__device__ __forceinline__ void fence_device() { __threadfence(); }

template <class Condition>
__device__ __forceinline__ void spin_wait(Condition condition) {
  while (!condition()) {
  }
}

// ---- Across the lanes of a warp. T has 4 bytes.

template <class T>
__device__ __forceinline__ T shuffle(T value, unsigned lane, unsigned mask = kFullWarp) {
  return __shfl_sync(mask, value, static_cast<int>(lane));
}
template <class T>
__device__ __forceinline__ T shuffle_xor(T value, unsigned lanes, unsigned mask = kFullWarp) {
  return __shfl_xor_sync(mask, value, static_cast<int>(lanes));
}
template <class T>
__device__ __forceinline__ T shuffle_up(T value, unsigned lanes, unsigned mask = kFullWarp) {
  return __shfl_up_sync(mask, value, lanes);
}
template <class T>
__device__ __forceinline__ T shuffle_down(T value, unsigned lanes, unsigned mask = kFullWarp) {
  return __shfl_down_sync(mask, value, lanes);
}
__device__ __forceinline__ unsigned ballot(bool predicate, unsigned mask = kFullWarp) {
  return __ballot_sync(mask, predicate);
}
__device__ __forceinline__ bool any(bool predicate, unsigned mask = kFullWarp) {
  return __any_sync(mask, predicate) != 0;
}
__device__ __forceinline__ bool all(bool predicate, unsigned mask = kFullWarp) {
  return __all_sync(mask, predicate) != 0;
}

// ---- Memory. T has 1, 2, 4, 8 or 16 bytes and is aligned to them; one instruction each.

/// The block's dynamic shared memory.
template <class Storage>
__device__ __forceinline__ Storage& shared() {
  extern __shared__ __align__(1024) unsigned char bytes[];
  return *reinterpret_cast<Storage*>(bytes);
}

/// Where something lies in the block's shared memory, as instructions have it that take no pointer.
__device__ __forceinline__ std::uint32_t shared_address(const void* address) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
}

template <class T>
__device__ __forceinline__ T load_shared(const T* address) {
  return *address;
}
template <class T>
__device__ __forceinline__ void store_shared(T* address, T value) {
  *address = value;
}
template <class T>
__device__ __forceinline__ T load_global(const T* address) {
  return *address;
}
template <class T>
__device__ __forceinline__ void store_global(T* address, T value) {
  *address = value;
}

// ---- Atomics on 4-byte numbers; they return the value before.

template <class T>
__device__ __forceinline__ T atomic_add_shared(T* address, T value) {
  return atomicAdd_block(address, value);
}
template <class T>
__device__ __forceinline__ T atomic_add_global(T* address, T value) {
  return atomicAdd(address, value);
}
template <class T>
__device__ __forceinline__ T atomic_max_shared(T* address, T value) {
  return atomicMax_block(address, value);
}
template <class T>
__device__ __forceinline__ T atomic_max_global(T* address, T value) {
  return atomicMax(address, value);
}
template <class T>
__device__ __forceinline__ T atomic_exchange_global(T* address, T value) {
  return atomicExch(address, value);
}
template <class T>
__device__ __forceinline__ T atomic_compare_exchange_global(T* address, T expected, T value) {
  return atomicCAS(address, expected, value);
}

// ---- Asynchronous copies. sm_80 and newer.

/// 16 bytes from global to shared memory, both aligned to 16.
__device__ __forceinline__ void cp_async(std::uint32_t to, const void* from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

/// The same, or 16 zero bytes where not `valid`: `from` is not read then, but is a legal address all the same.
__device__ __forceinline__ void cp_async_or_zero(std::uint32_t to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0)
               : "memory");
}

/// Makes a group of the thread's copies since the last one.
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Until all groups of this thread but the `kPending` newest have landed. Others see them after a barrier.
template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
  static_assert(kPending >= 0);
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// ---- Tensor cores: the whole warp at once

/// Four 8x8 matrices of 2-byte elements. Lane l names row l % 8 of matrix l / 8: 16 bytes, aligned; it gets the
/// elements 2 (l % 4) and the next of row l / 4 of each matrix, or of its column l / 4 from `trans`.
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t row, std::uint32_t (&r)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_trans(std::uint32_t row, std::uint32_t (&r)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}

/// d += a b of 16x16 by 16x8 matrices of float16 or bfloat16, added up in f32. sm_80 and newer.
template <class T>
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                             std::uint32_t b1) {
  static_assert(std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>);
  // Not volatile: it touches registers only, so that the compiler may schedule it as it likes.
  if constexpr (std::is_same_v<T, float16>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

// ---- Registers

/// The same bits as another type of the same size.
template <class To, class From>
__device__ __forceinline__ To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(float16 x) { return __half2float(__ushort_as_half(x.bits)); }
__device__ __forceinline__ float to_float(bfloat16 x) { return __uint_as_float(std::uint32_t{x.bits} << 16); }

/// Nearest even; overflow gives an infinity, NaN stays NaN, subnormals are kept.
template <class T>
__device__ __forceinline__ T from_float(float x) {
  if constexpr (sizeof(T) == 4) {
    return x;
  } else if constexpr (std::is_same_v<T, float16>) {
    return bits_as<float16>(__half_as_ushort(__float2half_rn(x)));
  } else {
    return bits_as<bfloat16>(__bfloat16_as_ushort(__float2bfloat16_rn(x)));
  }
}

/// Two numbers as 2-byte T, each as by from_float; `low` in the lower half, which comes first in memory.
template <class T>
__device__ __forceinline__ std::uint32_t from_floats(float low, float high) {
  if constexpr (std::is_same_v<T, float16>) {
    return bits_as<std::uint32_t>(__floats2half2_rn(low, high));
  } else {
    return bits_as<std::uint32_t>(__floats2bfloat162_rn(low, high));
  }
}

/// The same number, which the compiler shall keep in a register instead of computing it again.
__device__ __forceinline__ std::uint32_t keep(std::uint32_t x) {
  asm volatile("" : "+r"(x));
  return x;
}

// ---- Arithmetic

__device__ __forceinline__ float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ float max(float a, float b) { return fmaxf(a, b); }  ///< of a number and a NaN: the number
__device__ __forceinline__ float log(float x) { return logf(x); }
__device__ __forceinline__ float tanh(float x) { return tanhf(x); }

/// 1 / x with a relative error of at most 2^-23; subnormal x and results are 0.
__device__ __forceinline__ float reciprocal_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// 2^x with a relative error of at most 2^-22.5; subnormal x and results are 0.
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace sorot::inline v0::machine
