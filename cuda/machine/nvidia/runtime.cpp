#include "cuda/machine/runtime.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>

/// The host's door on the CUDA runtime. Each function is one call of it, or very few.
namespace sorot::inline v0::machine {
namespace {

/// Blocks get this much dynamic shared memory without being asked for it by name.
constexpr std::size_t kSharedBytesForAll = std::size_t{48} * 1024;

StatusCode code_of(cudaError_t error) {
  switch (error) {
    case cudaErrorInsufficientDriver:  // also what the runtime says where there is no driver at all
    case cudaErrorStubLibrary:
    case cudaErrorNoDevice:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice: return StatusCode::kNoDevice;
    case cudaErrorMemoryAllocation: return StatusCode::kOutOfMemory;
    default: return StatusCode::kDeviceError;
  }
}

/// What a call answered, as a Status. The runtime remembers a failure until somebody asks: `call` has told it here, so
/// no later call of anybody's finds it. (Errors that end the CUDA context stay, whatever one does.)
Status status_of(cudaError_t error, const char* call, Site site, const char* details = "") noexcept {
  if (error == cudaSuccess) return {};
  static_cast<void>(cudaGetLastError());
  const StatusCode code = code_of(error);
  char where[96] = "";
  if (site.line != 0) std::snprintf(where, sizeof where, " at %s:%d", site.file_name(), site.line);
  char message[312];
  std::snprintf(message, sizeof message, "%s%s failed%s%s: %s", code == StatusCode::kNoDevice ? "no usable GPU: " : "",
                call, where, details, cudaGetErrorString(error));
  return {code, message, static_cast<std::int32_t>(error)};
}

cudaMemcpyKind kind_of(Copy direction) {
  switch (direction) {
    case Copy::host_to_device: return cudaMemcpyHostToDevice;
    case Copy::device_to_host: return cudaMemcpyDeviceToHost;
    case Copy::device_to_device: return cudaMemcpyDeviceToDevice;
  }
  return cudaMemcpyDefault;
}

dim3 dim3_of(const Dim3& size) { return {size.x, size.y, size.z}; }

}  // namespace

bool is_emulated() noexcept { return false; }

Status device_count(int& count) noexcept {
  count = 0;
  return status_of(cudaGetDeviceCount(&count), "cudaGetDeviceCount", {});
}

Status device_properties(int ordinal, DeviceProperties& properties) noexcept {
  cudaDeviceProp found;
  if (const Status s = status_of(cudaGetDeviceProperties(&found, ordinal), "cudaGetDeviceProperties", {}); !s.ok()) {
    return s;
  }
  properties = {};
  std::memcpy(properties.name, found.name, strnlen(found.name, sizeof properties.name - 1));
  properties.compute_capability = 10 * found.major + found.minor;
  properties.multiprocessors = found.multiProcessorCount;
  properties.shared_bytes_per_block = static_cast<std::int32_t>(found.sharedMemPerBlockOptin);
  properties.shared_bytes_per_multiprocessor = static_cast<std::int32_t>(found.sharedMemPerMultiprocessor);
  properties.threads_per_multiprocessor = found.maxThreadsPerMultiProcessor;
  return {};
}

CurrentDevice::CurrentDevice(int ordinal) noexcept {
  status_ = status_of(cudaGetDevice(&before_), "cudaGetDevice", {});
  if (!status_.ok() || before_ == ordinal) return;
  status_ = status_of(cudaSetDevice(ordinal), "cudaSetDevice", {});
  changed_ = status_.ok();
}

CurrentDevice::~CurrentDevice() {
  if (changed_) static_cast<void>(status_of(cudaSetDevice(before_), "cudaSetDevice", {}));
}

Status allocate(std::size_t bytes, void*& memory, Site site) noexcept {
  memory = nullptr;
  if (bytes == 0) return {};
  char details[48];
  std::snprintf(details, sizeof details, " (%zu bytes)", bytes);
  return status_of(cudaMalloc(&memory, bytes), "cudaMalloc", site, details);
}

Status release(void* memory, Site site) noexcept {
  if (memory == nullptr) return {};
  return status_of(cudaFree(memory), "cudaFree", site);
}

Status copy(void* to, const void* from, std::size_t bytes, Copy direction, Stream stream, Site site) noexcept {
  if (bytes == 0) return {};
  return status_of(cudaMemcpyAsync(to, from, bytes, kind_of(direction), stream), "cudaMemcpyAsync", site);
}

Status fill(void* memory, unsigned char value, std::size_t bytes, Stream stream, Site site) noexcept {
  if (bytes == 0) return {};
  return status_of(cudaMemsetAsync(memory, value, bytes, stream), "cudaMemsetAsync", site);
}

Status create_stream(Stream& stream, Site site) noexcept {
  return status_of(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags", site);
}

Status destroy_stream(Stream stream, Site site) noexcept {
  return status_of(cudaStreamDestroy(stream), "cudaStreamDestroy", site);
}

Status synchronize(Stream stream, Site site) noexcept {
  return status_of(cudaStreamSynchronize(stream), "cudaStreamSynchronize", site);
}

Status create_event(Event& event, Site site) noexcept {
  return status_of(cudaEventCreate(&event), "cudaEventCreate", site);
}

Status destroy_event(Event event, Site site) noexcept {
  return status_of(cudaEventDestroy(event), "cudaEventDestroy", site);
}

Status record(Event event, Stream stream, Site site) noexcept {
  return status_of(cudaEventRecord(event, stream), "cudaEventRecord", site);
}

Status elapsed_milliseconds(Event start, Event stop, float& milliseconds, Site site) noexcept {
  return status_of(cudaEventElapsedTime(&milliseconds, start, stop), "cudaEventElapsedTime", site);
}

Status begin_capture(Stream stream, Site site) noexcept {
  // Of this thread's calls those that would wait or allocate are refused; other threads are none of our business.
  return status_of(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture", site);
}

Status end_capture(Stream stream, Graph& graph, Site site) noexcept {
  graph = nullptr;
  cudaGraph_t recorded = nullptr;
  Status status = status_of(cudaStreamEndCapture(stream, &recorded), "cudaStreamEndCapture", site);
  if (status.ok()) {
    status = status_of(cudaGraphInstantiateWithFlags(&graph, recorded, 0), "cudaGraphInstantiateWithFlags", site);
  }
  if (recorded != nullptr) {
    const Status destroyed = status_of(cudaGraphDestroy(recorded), "cudaGraphDestroy", site);
    if (status.ok()) status = destroyed;
  }
  return status;
}

Status replay(Graph graph, Stream stream, Site site) noexcept {
  return status_of(cudaGraphLaunch(graph, stream), "cudaGraphLaunch", site);
}

Status destroy_graph(Graph graph, Site site) noexcept {
  return status_of(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy", site);
}

Status launch_call(const LaunchConfig& config, const KernelCall& call, Site site) noexcept {
  const void* const function = reinterpret_cast<const void*>(call.function);
  char details[160];
  std::snprintf(details, sizeof details, " (%s, grid %u x %u x %u, block %u x %u x %u, %zu bytes of shared memory)",
                config.kernel, config.grid.x, config.grid.y, config.grid.z, config.block.x, config.block.y,
                config.block.z, config.shared_bytes);
  if (config.shared_bytes > kSharedBytesForAll) {
    // At every launch: it belongs to the current device, and costs less than to remember for which it was done.
    const cudaError_t error = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                   static_cast<int>(config.shared_bytes));
    if (error != cudaSuccess) return status_of(error, "cudaFuncSetAttribute", site, details);
  }
  void* params[] = {const_cast<void*>(call.params)};
  return status_of(cudaLaunchKernel(function, dim3_of(config.grid), dim3_of(config.block), params, config.shared_bytes,
                                    config.stream),
                   "cudaLaunchKernel", site, details);
}

}  // namespace sorot::inline v0::machine
