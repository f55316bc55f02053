#include "sorot/context.h"

#include "cpu/core/backend.h"

namespace sorot::inline v0 {

Context Context::reference() noexcept { return core::ContextAccess::make(core::kReferenceBackend); }

const char* Context::device_name() const noexcept { return backend_ == nullptr ? "none" : backend_->info.name; }

}  // namespace sorot::inline v0
