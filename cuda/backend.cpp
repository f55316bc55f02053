#include "cuda/backend.h"

#include <iterator>

#include "cpu/core/check.h"
#include "cuda/attention/attention_plan.h"
#include "cuda/machine/runtime.h"

namespace sorot::inline v0::core {

constinit const Backend kCudaBackend{
    .info = {"cuda", "kernels of this library on an NVIDIA GPU, or on the emulator in an EMULATED build",
             cuda::kAttentionKernelInfos, std::size(cuda::kAttentionKernelInfos)},
    .attention = &cuda::kAttention,
};

Status open_cuda(int ordinal, CUstream_st* stream, Context& context) noexcept {
  constexpr int kOldest = 75;
  int count = 0;
  if (Status s = machine::device_count(count); !s.ok()) return s;
  if (count == 0) return {StatusCode::kNoDevice, "this machine has no CUDA device"};
  if (ordinal < 0 || ordinal >= count) {
    return make_status(StatusCode::kInvalidArgument, "CUDA device %d does not exist, expected 0 to %d", ordinal,
                       count - 1);
  }
  machine::DeviceProperties properties;
  if (Status s = machine::device_properties(ordinal, properties); !s.ok()) return s;
  if (properties.compute_capability < kOldest) {
    return make_status(StatusCode::kUnsupported, "CUDA device %d (%s) is sm_%d, expected sm_%d or newer", ordinal,
                       properties.name, properties.compute_capability, kOldest);
  }
  context =
      ContextAccess::make(kCudaBackend, {stream, ordinal, properties.compute_capability, properties.multiprocessors,
                                         properties.shared_bytes_per_block, properties.shared_bytes_per_multiprocessor,
                                         properties.threads_per_multiprocessor});
  return {};
}

}  // namespace sorot::inline v0::core
