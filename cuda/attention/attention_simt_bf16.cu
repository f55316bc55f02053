#include "cuda/attention/attention_simt_launches.cuh"

namespace sorot::inline v0::cuda {

template struct AttentionSimtLaunches<bfloat16>;

}  // namespace sorot::inline v0::cuda
