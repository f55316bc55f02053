#pragma once

#include <cstddef>

#include "cpu/core/problem/attention.h"
#include "sorot/attention.h"
#include "sorot/context.h"
#include "sorot/version.h"

namespace sorot::inline v0::core {

/// What a device must do to offer attention. Both get a Problem that the front door has checked.
struct AttentionBackend {
  /// Chooses a kernel: fills kernel, variant, workspace_bytes, tiles and reasons. kUnsupported with the reason if
  /// no kernel (or not the hinted one) can serve.
  Status (*plan)(const Context& context, const AttentionProblem& problem, const PlanHint& hint,
                 AttentionPlan& plan) noexcept;

  /// Runs a plan of the same problem; the workspace has what the plan asked for.
  Status (*run)(const Context& context, const AttentionProblem& problem, const AttentionPlan& plan,
                void* workspace) noexcept;
};

/// One kind of device: its operators, null where it has none.
struct Backend {
  DeviceInfo info;
  const AttentionBackend* attention = nullptr;
};

extern const Backend kReferenceBackend;
extern const Backend kCudaBackend;  ///< only in builds with CUDA, real or emulated

/// Context::cuda, where the build has it.
Status open_cuda(int ordinal, CUstream_st* stream, Context& context) noexcept;

/// The way from a Context to its backend, for the front doors.
class ContextAccess {
 public:
  static const Backend* backend(const Context& context) noexcept { return context.backend_; }
  static const CudaDevice& cuda(const Context& context) noexcept { return context.cuda_; }
  static Context make(const Backend& backend, const CudaDevice& cuda = {}) noexcept {
    Context context;
    context.backend_ = &backend;
    context.cuda_ = cuda;
    return context;
  }
};

}  // namespace sorot::inline v0::core
