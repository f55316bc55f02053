#include "tests/support/device_args.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "tests/support/schedules.h"

namespace sorot::support {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::byte kLeadFill{0xA5};

/// Calls visit(name, view, is_output) for every tensor that has elements.
template <class Args, class Visit>
void for_each_tensor(Args& args, Visit visit) {
  auto& [q, k, v, out, kv_lengths, align, offsets, causal, window, mask, scale, softcap, bias, alibi_slopes, sinks, lse,
         weights] = args;
  const auto tensor = [&](const char* name, auto& view, bool output) {
    bool elements = view.dtype != DType::none;
    for (int d = 0; d < view.rank; ++d) elements = elements && view.shape[d] > 0;
    if (elements) visit(name, view, output);
  };
  tensor("q", q, false);
  tensor("k", k, false);
  tensor("v", v, false);
  tensor("kv_lengths", kv_lengths, false);
  tensor("offsets", offsets, false);
  tensor("mask", mask, false);
  tensor("bias", bias, false);
  tensor("alibi_slopes", alibi_slopes, false);
  tensor("sinks", sinks, false);
  tensor("out", out, true);
  tensor("lse", lse, true);
  tensor("weights", weights, true);
}

/// Bytes on the host that a tensor reaches, from the lowest to the highest.
struct Span {
  const std::byte* begin;
  const std::byte* end;
  bool output;
  std::string names;
};

Span span_of(const char* name, const ConstTensorView& view, bool output) {
  const auto width = static_cast<std::int64_t>(size_of(view.dtype));
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
  for (int d = 0; d < view.rank; ++d) {
    const std::int64_t reach = (view.shape[d] - 1) * view.strides[d];
    (reach < 0 ? lowest : highest) += reach;
  }
  const auto* data = static_cast<const std::byte*>(view.data);
  return {data + lowest * width, data + (highest + 1) * width, output, name};
}

std::vector<Span> united_spans(const AttentionArgs& args) {
  std::vector<Span> spans;
  for_each_tensor(
      args, [&](const char* name, const auto& view, bool output) { spans.push_back(span_of(name, view, output)); });
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<Span> united;
  for (const Span& span : spans) {
    if (united.empty() || span.begin >= united.back().end) {
      united.push_back(span);
      continue;
    }
    Span& last = united.back();
    last.end = std::max(last.end, span.end);
    last.output = last.output || span.output;
    last.names += ", " + span.names;
  }
  return united;
}

std::vector<std::byte> read_all(const DeviceMemory& memory) {
  std::vector<std::byte> bytes(memory.size());
  memory.read(0, bytes.data(), bytes.size());
  return bytes;
}

}  // namespace

DeviceArgs::DeviceArgs(const Device& device, const AttentionArgs& host) : args_(host) {
  if (device.on_host()) return;
  for (const Span& span : united_spans(host)) {
    const std::size_t lead = reinterpret_cast<std::uintptr_t>(span.begin) % kAlignment;
    const auto bytes = static_cast<std::size_t>(span.end - span.begin);
    ranges_.push_back({span.begin, bytes, span.output, span.names, lead, DeviceMemory(device, lead + bytes)});
  }
  for_each_tensor(args_, [&](const char*, auto& view, bool) {
    const auto* data = static_cast<const std::byte*>(view.data);
    // The span may reach below data, but data is an element: it lies within.
    const auto range = std::find_if(ranges_.begin(), ranges_.end(),
                                    [&](const Range& r) { return r.begin <= data && data < r.begin + r.bytes; });
    view.data = range->memory.data() + range->lead + (data - range->begin);
  });
  copy_in();
}

void DeviceArgs::copy_in() {
  for (Range& range : ranges_) {
    const std::vector<std::byte> lead(range.lead, kLeadFill);
    range.memory.write(0, lead.data(), lead.size());
    range.memory.write(range.lead, range.begin, range.bytes);
  }
}

std::vector<std::byte> DeviceArgs::outputs() const {
  std::vector<std::byte> bytes;
  for (const Range& range : ranges_) {
    if (!range.output) continue;
    const std::vector<std::byte> all = read_all(range.memory);
    bytes.insert(bytes.end(), all.begin() + static_cast<std::ptrdiff_t>(range.lead), all.end());
  }
  return bytes;
}

std::string DeviceArgs::copy_back() {
  std::string changed;
  for (const Range& range : ranges_) {
    const std::vector<std::byte> bytes = read_all(range.memory);
    const std::byte* tensors = bytes.data() + range.lead;
    if (std::any_of(bytes.data(), tensors, [](std::byte b) { return b != kLeadFill; })) {
      changed = range.names + ": bytes before the tensor's memory were written";
    }
    if (range.output) {
      std::memcpy(const_cast<std::byte*>(range.begin), tensors, range.bytes);
    } else if (std::memcmp(range.begin, tensors, range.bytes) != 0) {
      changed = range.names + ": an input was changed";
    }
  }
  return changed;
}

Status run_plan(const Device& device, const AttentionPlan& plan, const AttentionArgs& args) {
  DeviceArgs there(device, args);
  DeviceMemory workspace(device, plan.workspace_bytes);
  const std::vector<Schedule> list = schedules(device, args);
  std::vector<std::vector<std::byte>> results(list.size());
  // The first comes last: what is set is what the host gets to see.
  for (std::size_t s = list.size(); s-- > 0;) {
    if (s + 1 < list.size()) there.copy_in();
    const Status status =
        under(list[s], [&] { return attention(device.context(), plan, there.args(), workspace.workspace()); });
    if (!status.ok()) return status;
    results[s] = there.outputs();
  }
  for (std::size_t s = 0; s < list.size(); ++s) {
    if (results[s] == results[0]) continue;
    const std::string races = report_of_races(device, list[s].settings, [&] {
      there.copy_in();
      return attention(device.context(), plan, there.args(), workspace.workspace());
    });
    const std::string what = "an output has other bits in " + list[s].name;
    return {StatusCode::kInternal, (races.empty() ? what : what + ": " + races).c_str()};
  }
  const std::string changed = there.copy_back();
  if (!changed.empty()) return {StatusCode::kInternal, changed.c_str()};
  if (!workspace.guards_intact()) return {StatusCode::kInternal, "the workspace was overrun"};
  return {};
}

}  // namespace sorot::support
