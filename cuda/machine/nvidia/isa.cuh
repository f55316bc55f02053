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
  extern __shared__ __align__(128) unsigned char bytes[];
  return *reinterpret_cast<Storage*>(bytes);
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

// ---- Arithmetic

__device__ __forceinline__ float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ float max(float a, float b) { return fmaxf(a, b); }  ///< of a number and a NaN: the number
__device__ __forceinline__ float log(float x) { return logf(x); }
__device__ __forceinline__ float tanh(float x) { return tanhf(x); }

/// 2^x with a relative error of at most 2^-22.5; subnormal x and results are 0.
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace sorot::inline v0::machine
