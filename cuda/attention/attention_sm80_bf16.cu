#include "cuda/attention/attention_sm80_launches.cuh"

namespace sorot::inline v0::cuda {

template struct AttentionSm80Launches<bfloat16>;

}  // namespace sorot::inline v0::cuda
