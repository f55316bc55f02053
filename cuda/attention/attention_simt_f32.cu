#include "cuda/attention/attention_simt_launches.cuh"

namespace sorot::inline v0::cuda {

template struct AttentionSimtLaunches<float>;

}  // namespace sorot::inline v0::cuda
