#include "bench/bench.h"

#include <stdexcept>
#include <vector>

namespace sorot::bench {
namespace {

template <class T>
void fill(void* data, std::size_t elements, std::mt19937& random) {
  constexpr std::size_t kDrawn = std::size_t{1} << 20;
  std::normal_distribution<double> normal;
  T* values = static_cast<T*>(data);
  for (std::size_t i = 0; i < elements; ++i)
    values[i] = i < kDrawn ? static_cast<T>(normal(random)) : values[i - kDrawn];
}

[[maybe_unused]] void require(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

bool failed = false;

}  // namespace

void fail(benchmark::State& state, const Status& status) {
  failed = true;
  state.SkipWithError(status.message());
}

bool anything_failed() { return failed; }

DeviceMemory random_tensor(const Device& device, DType dtype, std::size_t elements, std::mt19937& random) {
  std::vector<std::byte> values(elements * size_of(dtype));
  switch (dtype) {
    case DType::f64: fill<double>(values.data(), elements, random); break;
    case DType::f32: fill<float>(values.data(), elements, random); break;
    case DType::f16: fill<float16>(values.data(), elements, random); break;
    case DType::bf16: fill<bfloat16>(values.data(), elements, random); break;
    default: throw std::invalid_argument("no random tensors of that dtype");
  }
  DeviceMemory memory(device, values.size());
  memory.write(0, values.data(), values.size());
  return memory;
}

std::vector<std::string> timed_devices() {
  std::vector<std::string> names = support::device_names();
  if (support::kEmulated) std::erase(names, "cuda");
  return names;
}

StreamTimer::StreamTimer(const Device& device) : device_(device) {
  if constexpr (support::kHasCuda) {
    if (device_.on_host()) return;
    for (machine::Event& event : events_) require(machine::create_event(event));
  }
}

StreamTimer::~StreamTimer() {
  if constexpr (support::kHasCuda) {
    for (machine::Event event : events_) {
      if (event != nullptr) static_cast<void>(machine::destroy_event(event));
    }
  }
}

void StreamTimer::start() {
  if constexpr (support::kHasCuda) {
    if (!device_.on_host()) return require(machine::record(events_[0], device_.stream()));
  }
  begin_ = std::chrono::steady_clock::now();
}

double StreamTimer::stop() {
  if constexpr (support::kHasCuda) {
    if (!device_.on_host()) {
      float milliseconds = 0;
      require(machine::record(events_[1], device_.stream()));
      device_.wait();
      require(machine::elapsed_milliseconds(events_[0], events_[1], milliseconds));
      return static_cast<double>(milliseconds) / 1000;
    }
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

}  // namespace sorot::bench
