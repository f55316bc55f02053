#include "cuda/machine/runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "cuda/emulator/report.h"
#include "cuda/emulator/stream.h"

/// The runtime of the emulated machine.
namespace sorot::inline v0::machine {
namespace {

using emulator::Allocation;
using emulator::engine;
using emulator::Failure;
using emulator::status_of;
using Lock = std::lock_guard<std::recursive_mutex>;

/// Runs something on the device, and gives its failure a name and a line.
template <class Run>
Status on_device(const char* call, Site site, Run run) noexcept {
  const Lock lock(emulator::device_mutex());
  return status_of(run(), call, site);
}

const char* name(Copy direction) {
  switch (direction) {
    case Copy::host_to_device: return "host_to_device";
    case Copy::device_to_host: return "device_to_host";
    case Copy::device_to_device: return "device_to_device";
  }
  return "no direction";
}

/// One end of a copy must be device memory, whole, or else host memory.
Failure check_end(const char* what, const void* address, std::size_t bytes, bool on_device, Copy direction) {
  const emulator::DeviceMemory& memory = engine.memory;
  if (on_device && memory.find(address, bytes) == nullptr) {
    return {emulator::kErrorInvalidValue, std::string(name(direction)) + ": " + what + " is " + std::to_string(bytes) +
                                              " bytes at " + memory.describe(address) +
                                              ", expected to lie in one allocation of device memory"};
  }
  if (!on_device && memory.owns(address)) {
    return {emulator::kErrorInvalidValue,
            std::string(name(direction)) + ": " + what + " is " + memory.describe(address) + ", expected host memory"};
  }
  return {};
}

/// Opens the allocation that holds an address, if it is the device's, while it lives.
class Opened {
 public:
  explicit Opened(const void* address) : allocation_(engine.memory.find(address, 0)) {
    if (allocation_ != nullptr) emulator::DeviceMemory::open(*allocation_, true);
  }
  ~Opened() {
    if (allocation_ != nullptr) emulator::DeviceMemory::open(*allocation_, false);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

 private:
  const Allocation* allocation_;
};

Failure run_copy(void* to, const void* from, std::size_t bytes, Copy direction) {
  if (Failure f = check_end("to", to, bytes, direction != Copy::device_to_host, direction)) return f;
  if (Failure f = check_end("from", from, bytes, direction != Copy::host_to_device, direction)) return f;
  const Opened open_to(to);
  const Opened open_from(from);
  std::memmove(to, from, bytes);
  return {};
}

}  // namespace

bool is_emulated() noexcept { return true; }

Status device_count(int& count) noexcept {
  count = 1;
  return {};
}

Status device_properties(int ordinal, DeviceProperties& properties) noexcept {
  return on_device("device_properties", Site::here(), [&]() -> Failure {
    if (ordinal != 0) {
      return {emulator::kErrorInvalidDevice,
              "ordinal is " + std::to_string(ordinal) + ", but the emulator is device 0"};
    }
    const emulator::Profile& profile = *emulator::find_profile(engine.settings.profile);
    std::snprintf(properties.name, sizeof properties.name, "%s", profile.name);
    properties.compute_capability = profile.compute_capability;
    properties.multiprocessors = profile.multiprocessors;
    properties.shared_bytes_per_block = profile.shared_bytes_per_block;
    properties.shared_bytes_per_multiprocessor = profile.shared_bytes_per_multiprocessor;
    properties.threads_per_multiprocessor = profile.threads_per_multiprocessor;
    return {};
  });
}

CurrentDevice::CurrentDevice(int ordinal) noexcept {
  if (ordinal != 0) {
    status_ = Status(StatusCode::kDeviceError, "the emulator is device 0", emulator::kErrorInvalidDevice);
  }
}
CurrentDevice::~CurrentDevice() = default;

Status allocate(std::size_t bytes, void*& memory, Site site) noexcept {
  return on_device("allocate", site, [&]() -> Failure {
    if (emulator::capturing())
      return {emulator::kErrorCaptureUnsupported, "no memory is allocated while a stream captures"};
    memory = bytes == 0 ? nullptr : engine.memory.allocate(bytes);
    if (bytes == 0 || memory != nullptr) return {};
    return {emulator::kErrorMemoryAllocation, "no device memory for " + std::to_string(bytes) + " bytes"};
  });
}

Status release(void* memory, Site site) noexcept {
  return on_device("release", site, [&]() -> Failure {
    if (memory == nullptr || engine.memory.release(memory)) return {};
    return {emulator::kErrorInvalidValue,
            "memory is " + engine.memory.describe(memory) + ", expected the start of a live allocation"};
  });
}

Status copy(void* to, const void* from, std::size_t bytes, Copy direction, Stream stream, Site site) noexcept {
  return on_device("copy", site, [&]() -> Failure {
    if (bytes == 0) return {};
    return emulator::submit(stream, [=] { return run_copy(to, from, bytes, direction); });
  });
}

Status fill(void* memory, unsigned char value, std::size_t bytes, Stream stream, Site site) noexcept {
  return on_device("fill", site, [&]() -> Failure {
    if (bytes == 0) return {};
    return emulator::submit(stream, [=]() -> Failure {
      if (Failure f = check_end("memory", memory, bytes, true, Copy::host_to_device)) return f;
      const Opened open(memory);
      std::memset(memory, value, bytes);
      return {};
    });
  });
}

Status create_stream(Stream& stream, Site site) noexcept {
  return on_device("create_stream", site, [&]() -> Failure {
    stream = emulator::create_stream();
    return {};
  });
}
Status destroy_stream(Stream stream, Site site) noexcept {
  return on_device("destroy_stream", site, [&] { return emulator::destroy(stream); });
}
Status synchronize(Stream stream, Site site) noexcept {
  return on_device("synchronize", site, [&] { return emulator::synchronize(stream); });
}

Status create_event(Event& event, Site site) noexcept {
  return on_device("create_event", site, [&]() -> Failure {
    event = emulator::create_event();
    return {};
  });
}
Status destroy_event(Event event, Site site) noexcept {
  return on_device("destroy_event", site, [&] { return emulator::destroy(event); });
}
Status record(Event event, Stream stream, Site site) noexcept {
  return on_device("record", site, [&] { return emulator::record(event, stream); });
}
Status elapsed_milliseconds(Event start, Event stop, float& milliseconds, Site site) noexcept {
  return on_device("elapsed_milliseconds", site, [&] { return emulator::elapsed(start, stop, milliseconds); });
}

Status begin_capture(Stream stream, Site site) noexcept {
  return on_device("begin_capture", site, [&] { return emulator::begin_capture(stream); });
}
Status end_capture(Stream stream, Graph& graph, Site site) noexcept {
  return on_device("end_capture", site, [&] { return emulator::end_capture(stream, graph); });
}
Status replay(Graph graph, Stream stream, Site site) noexcept {
  return on_device("replay", site, [&] { return emulator::replay(graph, stream); });
}
Status destroy_graph(Graph graph, Site site) noexcept {
  return on_device("destroy_graph", site, [&] { return emulator::destroy(graph); });
}

Status launch_call(const LaunchConfig& config, const KernelCall& call, Site site) noexcept {
  return on_device("launch", site, [&]() -> Failure {
    emulator::LaunchRequest request;
    request.kernel = config.kernel;
    request.site = site;
    request.record = {config.kernel,
                      config.stream,
                      {config.grid.x, config.grid.y, config.grid.z},
                      {config.block.x, config.block.y, config.block.z},
                      config.shared_bytes};
    const auto* bytes = static_cast<const std::byte*>(call.params);
    // As by CUDA, parameters are copied now, and what they point at is read when the kernel runs.
    const std::vector<std::byte> params(bytes, bytes + call.params_bytes);
    request.body = [function = call.function, invoke = call.invoke, params] { invoke(function, params.data()); };
    return emulator::submit(config.stream, [request] { return emulator::launch(request); });
  });
}

}  // namespace sorot::inline v0::machine
