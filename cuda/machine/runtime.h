#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cuda/machine/site.h"
#include "sorot/status.h"

struct CUevent_st;
struct CUgraphExec_st;
struct CUstream_st;

/// The host's door to a CUDA device: memory, copies, streams, events, graphs, launches. Behind it stands the CUDA
/// runtime (nvidia/) or the emulator (emulated/). No CUDA header is needed to use it.
///
/// Everything acts on the calling thread's current device and answers with a Status: kNoDevice where the machine or
/// the driver lacks what it takes, kOutOfMemory, else kDeviceError with CUDA's own code and the line that asked.
namespace sorot::inline v0::machine {

using Stream = CUstream_st*;  ///< null: the legacy default stream
using Event = CUevent_st*;
using Graph = CUgraphExec_st*;  ///< what a capture recorded, ready to be replayed

/// Whether kernels run on the host instead of a GPU.
bool is_emulated() noexcept;

/// What launchers and plans need to know of a device.
struct DeviceProperties {
  char name[64] = {};
  std::int32_t compute_capability = 0;               ///< 80 for 8.0
  std::int32_t multiprocessors = 0;                  ///< SMs
  std::int32_t shared_bytes_per_block = 0;           ///< most dynamic shared memory a block may ask for
  std::int32_t shared_bytes_per_multiprocessor = 0;  ///< shared by the blocks that are resident on an SM
  std::int32_t threads_per_multiprocessor = 0;
};

Status device_count(int& count) noexcept;
Status device_properties(int ordinal, DeviceProperties& properties) noexcept;

/// Makes a device current for the calling thread while it lives, then restores the one before.
class CurrentDevice {
 public:
  explicit CurrentDevice(int ordinal) noexcept;
  ~CurrentDevice();  // NOLINT(performance-trivially-destructible): it is in an emulated build only
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  const Status& status() const noexcept { return status_; }

 private:
  int before_ = 0;
  bool changed_ = false;
  Status status_;
};

/// Device memory, aligned to 256 bytes; its contents are undefined. No bytes: null.
Status allocate(std::size_t bytes, void*& memory, Site site = Site::here()) noexcept;
Status release(void* memory, Site site = Site::here()) noexcept;

enum class Copy : std::uint8_t { host_to_device, device_to_host, device_to_device };

/// In the order of the stream; the host's memory is pageable, so a copy from or to it may wait for the stream.
Status copy(void* to, const void* from, std::size_t bytes, Copy direction, Stream stream,
            Site site = Site::here()) noexcept;
Status fill(void* memory, unsigned char value, std::size_t bytes, Stream stream, Site site = Site::here()) noexcept;

Status create_stream(Stream& stream, Site site = Site::here()) noexcept;
Status destroy_stream(Stream stream, Site site = Site::here()) noexcept;
Status synchronize(Stream stream, Site site = Site::here()) noexcept;

Status create_event(Event& event, Site site = Site::here()) noexcept;
Status destroy_event(Event event, Site site = Site::here()) noexcept;
Status record(Event event, Stream stream, Site site = Site::here()) noexcept;
Status elapsed_milliseconds(Event start, Event stop, float& milliseconds, Site site = Site::here()) noexcept;

/// Between the two calls the stream runs nothing: what it is given is recorded into the graph.
Status begin_capture(Stream stream, Site site = Site::here()) noexcept;
Status end_capture(Stream stream, Graph& graph, Site site = Site::here()) noexcept;
Status replay(Graph graph, Stream stream, Site site = Site::here()) noexcept;
Status destroy_graph(Graph graph, Site site = Site::here()) noexcept;

struct Dim3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

struct LaunchConfig {
  const char* kernel = "";       ///< static text, for reports and records
  Dim3 grid;                     ///< blocks
  Dim3 block;                    ///< threads of a block, at most 1024
  std::size_t shared_bytes = 0;  ///< dynamic shared memory of a block
  Stream stream = nullptr;
};

/// A kernel with its one parameter, a struct, as the machine takes it.
struct KernelCall {
  using Function = void (*)();
  Function function = nullptr;
  void (*invoke)(Function function, const void* params) = nullptr;  ///< the body by an ordinary call; emulator only
  const void* params = nullptr;
  std::size_t params_bytes = 0;
};

Status launch_call(const LaunchConfig& config, const KernelCall& call, Site site) noexcept;

/// Launches a kernel. Nothing waits: what goes wrong while it runs is reported by a later call, except by the
/// emulator, which runs it here and now.
template <class Params>
Status launch(const LaunchConfig& config, void (*kernel)(Params), const std::type_identity_t<Params>& params,
              Site site = Site::here()) noexcept {
  static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= 4096);
  const auto invoke = [](KernelCall::Function function, const void* bytes) {
    reinterpret_cast<void (*)(Params)>(function)(*static_cast<const Params*>(bytes));
  };
  return launch_call(config, {reinterpret_cast<KernelCall::Function>(kernel), invoke, &params, sizeof params}, site);
}

}  // namespace sorot::inline v0::machine
