#include "bench/bench.h"

#include <memory>
#include <stdexcept>

namespace sorot::bench {
namespace {

template <class T>
void fill(void* data, std::size_t elements, std::mt19937& random) {
  std::normal_distribution<double> normal;
  for (std::size_t i = 0; i < elements; ++i) static_cast<T*>(data)[i] = static_cast<T>(normal(random));
}

}  // namespace

void* Buffer::data() {
  void* aligned = storage_.data();
  std::size_t space = storage_.size();
  return std::align(kAlignment, storage_.size() - kAlignment, aligned, space);
}

Buffer random_tensor(DType dtype, std::size_t elements, std::mt19937& random) {
  Buffer buffer(elements * size_of(dtype));
  switch (dtype) {
    case DType::f64: fill<double>(buffer.data(), elements, random); break;
    case DType::f32: fill<float>(buffer.data(), elements, random); break;
    case DType::f16: fill<float16>(buffer.data(), elements, random); break;
    case DType::bf16: fill<bfloat16>(buffer.data(), elements, random); break;
    default: throw std::invalid_argument("no random tensors of that dtype");
  }
  return buffer;
}

DType dtype_of(const std::string& name) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    if (name == sorot::name(dtype)) return dtype;
  }
  throw std::invalid_argument("dtype is '" + name + "', expected f64, f32, f16 or bf16");
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (std::size_t d = 0; d < build_info().device_count; ++d) {
    const std::string name = build_info().devices[d]->name;
    if (name != "cuda") names.push_back(name);
  }
  return names;
}

Context make_context(const std::string& device) {
  if (device == "reference") return Context::reference();
  throw std::invalid_argument("sorot_bench cannot make a context for device " + device);
}

}  // namespace sorot::bench
