#pragma once

#include <cstddef>

#include "sorot/export.h"

namespace sorot {
/// The inline namespace carries the major version, so two incompatible copies never link by accident.
inline namespace v0 {

/// Semantic version of these headers. CMake reads the three numbers from here.
inline constexpr int kVersionMajor = 0;
inline constexpr int kVersionMinor = 1;
inline constexpr int kVersionPatch = 0;

/// One kernel instantiation that was compiled into the library.
struct KernelInfo {
  const char* op;       ///< operator it serves: "attention"
  const char* kernel;   ///< name, as a PlanHint takes it: "attention_reference"
  const char* variant;  ///< instantiation, as a plan reports it: "f32"
};

/// One device this build can compute on.
struct DeviceInfo {
  const char* name;           ///< "reference"
  const char* description;    ///< one line for people
  const KernelInfo* kernels;  ///< every instantiation for this device
  std::size_t kernel_count;
};

/// What the library that is actually linked was built from.
struct BuildInfo {
  const char* version;        ///< "0.1.0"
  const char* compiler;       ///< host compiler and its version
  const char* cuda_compiler;  ///< "nvcc 13.0.88"; "emulated" where the host compiler built the kernels; null: no CUDA
  const DeviceInfo* const* devices;
  std::size_t device_count;
};

SOROT_API const BuildInfo& build_info() noexcept;

}  // namespace v0
}  // namespace sorot
