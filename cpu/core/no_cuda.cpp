#include "cpu/core/backend.h"

/// Stands in for cuda/ in a build without it.
namespace sorot::inline v0::core {

Status open_cuda(int, CUstream_st*, Context&) noexcept {
  return {StatusCode::kNoDevice, "this sorot was built without CUDA (SOROT_CUDA=OFF, or no CUDA compiler was found)"};
}

}  // namespace sorot::inline v0::core
