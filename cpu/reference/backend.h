#pragma once

#include "cpu/core/backend.h"

/// The operators of the reference, each defined in the file of its name.
namespace sorot::inline v0::reference {

extern const core::AttentionBackend kAttention;

}  // namespace sorot::inline v0::reference
