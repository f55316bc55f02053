#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>

#include "cpu/core/problem/attention.h"
#include "sorot/context.h"
#include "sorot/tensor.h"

/// Devices and problems made of numbers: no device, no tensor is there. Data are addresses that nobody reads.
namespace sorot::cuda {

/// T4, A100, A10, H100, B200, RTX 5090: the shared memory is what CUDA allows a block and an SM of each.
inline core::CudaDevice device(int profile) {
  constexpr int kKilobyte = 1024;
  core::CudaDevice made;
  made.compute_capability = profile;
  switch (profile) {
    case 75:
      made.multiprocessors = 40, made.shared_bytes_per_block = 64, made.shared_bytes_per_multiprocessor = 64;
      break;
    case 80:
      made.multiprocessors = 108, made.shared_bytes_per_block = 163, made.shared_bytes_per_multiprocessor = 164;
      break;
    case 86:
      made.multiprocessors = 84, made.shared_bytes_per_block = 99, made.shared_bytes_per_multiprocessor = 100;
      break;
    case 90:
      made.multiprocessors = 132, made.shared_bytes_per_block = 227, made.shared_bytes_per_multiprocessor = 228;
      break;
    case 100:
      made.multiprocessors = 148, made.shared_bytes_per_block = 227, made.shared_bytes_per_multiprocessor = 228;
      break;
    case 120:
      made.multiprocessors = 170, made.shared_bytes_per_block = 99, made.shared_bytes_per_multiprocessor = 100;
      break;
    default: ADD_FAILURE() << "no profile " << profile;
  }
  made.shared_bytes_per_block *= kKilobyte;
  made.shared_bytes_per_multiprocessor *= kKilobyte;
  made.threads_per_multiprocessor = profile == 75 ? 1024 : profile == 86 || profile == 120 ? 1536 : 2048;
  return made;
}

inline TensorView tensor(DType dtype, std::initializer_list<std::int64_t> shape, std::uintptr_t address = 4096) {
  return sorot::view(reinterpret_cast<void*>(address), dtype, shape);  // NOLINT(performance-no-int-to-ptr)
}

struct Shape {
  std::int64_t batch, heads, kv_heads, queries, keys, head_dim, value_dim;
};

inline core::AttentionProblem problem(const Shape& s, DType dtype = DType::f16) {
  core::AttentionProblem p;
  p.batch = s.batch;
  p.heads = s.heads;
  p.kv_heads = s.kv_heads;
  p.queries = s.queries;
  p.keys = s.keys;
  p.head_dim = s.head_dim;
  p.value_dim = s.value_dim;
  p.group = s.heads / s.kv_heads;
  p.q = tensor(dtype, {s.batch, s.heads, s.queries, s.head_dim});
  p.k = tensor(dtype, {s.batch, s.kv_heads, s.keys, s.head_dim});
  p.v = tensor(dtype, {s.batch, s.kv_heads, s.keys, s.value_dim});
  p.out = tensor(dtype, {s.batch, s.heads, s.queries, s.value_dim});
  return p;
}

}  // namespace sorot::cuda
