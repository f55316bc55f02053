#include "cpu/reference/backend.h"

#include <iterator>

namespace sorot::inline v0::core {
namespace {

constexpr KernelInfo kKernels[] = {
    {"attention", "attention_reference", "f64"},
    {"attention", "attention_reference", "f32"},
    {"attention", "attention_reference", "f16"},
    {"attention", "attention_reference", "bf16"},
};

}  // namespace

constinit const Backend kReferenceBackend{
    .info = {"reference", "plain loops on the calling thread: the definition of every result", kKernels,
             std::size(kKernels)},
    .attention = &reference::kAttention,
};

}  // namespace sorot::inline v0::core
