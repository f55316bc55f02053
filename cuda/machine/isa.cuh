#pragma once

/// The device's door: one function an instruction, all that kernels may use besides plain C++.
///
/// Two files of the same functions stand behind it: nvidia/isa.cuh, where each is the instruction, and
/// emulated/isa.cuh, where each is what the instruction means, in plain C++ on the emulator. They differ in one thing:
/// an emulated function that can fail or be counted takes the caller's line as a last, defaulted argument.
///
/// The dialect: a kernel is `template <...> __global__ void __launch_bounds__(kThreads) name(const __grid_constant__
/// Params p)`; helpers are `__device__ __forceinline__`; shared memory is one struct a kernel, `shared<Storage>()`;
/// every access to shared or global memory goes through load and store; polling loops are `spin_wait(condition)`.
#if defined(__CUDACC__)
#include "cuda/machine/nvidia/isa.cuh"
#else
#include "cuda/machine/emulated/isa.cuh"
#endif
