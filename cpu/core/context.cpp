#include "sorot/context.h"

#include "cpu/core/backend.h"

namespace sorot::inline v0 {

Context Context::reference() noexcept { return core::ContextAccess::make(core::kReferenceBackend); }

Status Context::cuda(int ordinal, CUstream_st* stream, Context& context) noexcept {
  return core::open_cuda(ordinal, stream, context);
}

const char* Context::device_name() const noexcept { return backend_ == nullptr ? "none" : backend_->info.name; }

}  // namespace sorot::inline v0
