// A user's program with a kernel of its own: it and Sorot share one CUDA runtime, and Sorot takes the user's stream.
#include <sorot/sorot.h>

#include <cstdio>

namespace {

__global__ void twice(float* x) { *x *= 2; }

/// 3, doubled on the device; 0 if anything failed.
float doubled(cudaStream_t stream) {
  float value = 3;
  float* x = nullptr;
  if (cudaMallocAsync(&x, sizeof value, stream) != cudaSuccess) return 0;
  cudaMemcpyAsync(x, &value, sizeof value, cudaMemcpyHostToDevice, stream);
  twice<<<1, 1, 0, stream>>>(x);
  cudaMemcpyAsync(&value, x, sizeof value, cudaMemcpyDeviceToHost, stream);
  cudaFreeAsync(x, stream);
  return cudaStreamSynchronize(stream) == cudaSuccess ? value : 0;
}

}  // namespace

int main() {
  cudaStream_t stream = nullptr;
  const bool gpu = cudaStreamCreate(&stream) == cudaSuccess;
  cudaError_t before = cudaGetLastError();
  before = cudaGetLastError();  // now success, or there is no driver, and every call says so

  sorot::Context context;
  const sorot::Status status = sorot::Context::cuda(0, stream, context);
  std::printf("%s: %s %s\n", sorot::build_info().cuda_compiler, sorot::name(status.code()), status.message());
  if (status.code() != (gpu ? sorot::StatusCode::kOk : sorot::StatusCode::kNoDevice)) return 1;

  // The failure stays in the Status; the user's own error checking does not find it.
  const cudaError_t after = cudaGetLastError();
  if (after != before) return std::printf("left behind: %s\n", cudaGetErrorString(after));
  if (gpu && doubled(stream) != 6) return std::puts("the user's own kernel gives a wrong number");
  return 0;
}
