#pragma once

#include "cpu/core/backend.h"

/// The operators of CUDA devices, each defined in the launcher of its folder.
namespace sorot::inline v0::cuda {

extern const core::AttentionBackend kAttention;

}  // namespace sorot::inline v0::cuda
