#include "tests/support/half_problem.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "tests/support/device_args.h"
#include "tests/support/read_args.h"
#include "tests/support/storage.h"

namespace sorot::support {
namespace {

std::int64_t padded(std::int64_t columns) { return (columns + 7) / 8 * 8; }

/// `bytes` bytes of storage, aligned to 16.
std::byte* aligned(std::vector<std::byte>& storage, std::size_t bytes, std::byte fill) {
  constexpr std::size_t kAlignment = 16;
  storage.assign(bytes + kAlignment, fill);
  std::byte* begin = storage.data();
  while (reinterpret_cast<std::uintptr_t>(begin) % kAlignment != 0) ++begin;
  return begin;
}

/// The view's numbers in another type, each row with zeros behind it; `storage` holds them, aligned to 16 bytes.
TensorView converted(const ConstTensorView& view, DType type, std::vector<std::byte>& storage) {
  const std::vector<double> values = read_view(view);
  const auto columns = static_cast<std::size_t>(view.shape[3]);
  const auto width = static_cast<std::size_t>(padded(view.shape[3]));
  const std::size_t rows = columns == 0 ? 0 : values.size() / columns;
  std::byte* begin = aligned(storage, rows * width * size_of(type), std::byte{0});
  for (std::size_t n = 0; n < values.size(); ++n) {
    encode(type, values[n], begin + (n / columns * width + n % columns) * size_of(type));
  }
  return sorot::view(begin, type, {view.shape[0], view.shape[1], view.shape[2], padded(view.shape[3])});
}

TensorView output(DType type, std::initializer_list<std::int64_t> shape, std::vector<std::byte>& storage) {
  std::size_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
  return sorot::view(aligned(storage, count * size_of(type), std::byte{0xFF}), type, shape);
}

/// Larger problems take the emulator seconds.
bool is_small(const AttentionArgs& args) {
  constexpr double kMost = 1.5e6;
  const auto size = [](std::int64_t n) { return static_cast<double>(n); };
  return size(args.q.shape[0]) * size(args.q.shape[1]) * (size(args.q.shape[2]) + 64) * (size(args.k.shape[2]) + 64) *
             (size(args.q.shape[3]) + size(args.v.shape[3])) <=
         kMost;
}

}  // namespace

HalfProblem::HalfProblem(const AttentionArgs& original, DType type) : args(original) {
  const double head_dim = static_cast<double>(original.q.shape[3]);
  if (!args.scale.has_value()) args.scale = 1 / std::sqrt(head_dim);
  args.q = converted(original.q, type, q_);
  args.k = converted(original.k, type, k_);
  args.v = converted(original.v, type, v_);
  const auto& q = args.q.shape;
  args.out = output(type, {q[0], q[1], q[2], args.v.shape[3]}, out_);
  args.lse = output(DType::f32, {q[0], q[1], q[2]}, lse_);
  if (args.weights.dtype != DType::none) args.weights = output(type, {q[0], q[1], q[2], args.k.shape[2]}, weights_);
}

std::string check_in_half(const Device& device, const AttentionArgs& args) {
  if (device.on_host() || args.q.dtype != DType::f32 || !is_small(args)) return "";
  struct Choice {
    DType type;
    const char* kernel;
  };
  for (const auto& [type, kernel] :
       {Choice{DType::bf16, "attention_sm80_plain"}, Choice{DType::f16, "attention_sm80_general"}}) {
    HalfProblem half(args, type);
    AttentionPlan plan;
    const Status planned = attention_plan(device.context(), half.args, plan, {kernel});
    if (planned.code() == StatusCode::kUnsupported) continue;
    const Status status = planned.ok() ? run_plan(device, plan, half.args) : planned;
    const std::string problem = status.ok() ? judge_call(half.args).what : status.message();
    if (!problem.empty()) return fmt::format("in {} on {}: {}", name(type), kernel, problem);
  }
  return "";
}

}  // namespace sorot::support
