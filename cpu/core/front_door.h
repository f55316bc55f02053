#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cpu/core/backend.h"
#include "cpu/core/check.h"
#include "cpu/core/plan_key.h"

/// What all front doors do alike once they say what their fields are, by a function beside the operator:
///   template <class Visit> void for_each_field(const XArgs& args, Visit visit);   // visit("name", view or word), in
///   order
namespace sorot::inline v0::core {

template <class Plan, class Args>
typename Plan::Key make_key(const Args& args) noexcept {
  typename Plan::Key key;
  std::size_t i = 0;
  for_each_field(args, [&](const char*, const auto& field) {
    key.fields[i] = key_word(field);
    key.alignment[i] = key_alignment(field);
    ++i;
  });
  return key;
}

/// Outputs and the workspace (null while planning) overlap nothing; inputs may overlap each other.
template <class Plan, class Args>
void check_overlaps(Check& check, const Args& args, const Workspace* workspace) noexcept {
  if (!check.ok()) return;
  ByteRange ranges[std::extent_v<decltype(Plan::Key::fields)> + 1];
  std::size_t count = 0;
  for_each_field(args, [&](const char* name, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (!std::is_same_v<Field, std::uint64_t>) {
      constexpr bool kWritten = std::is_same_v<Field, TensorView>;
      if constexpr (kWritten) check.no_self_overlap(name, field);
      ranges[count++] = byte_range(name, field, kWritten);
    }
  });
  if (workspace != nullptr) {
    const std::uint64_t address = address_of(workspace->data);
    ranges[count++] = {"workspace", address, address + workspace->bytes, true};
  }
  require_disjoint(check, ranges, count);
}

inline void refuse_field(Check& check, const char* name, std::uint64_t) noexcept {
  check.require(false, "%s is not what the plan was made for; only data pointers may differ, so make a new plan", name);
}

inline void refuse_field(Check& check, const char* name, const ConstTensorView& view) noexcept {
  if (absent(view)) {
    check.require(
        false, "%s is absent, but the plan was made with it; only data pointers may differ, so make a new plan", name);
  } else {
    check.require(false,
                  "%s is %s %s with strides %s, not what the plan was made for; only data "
                  "pointers may differ, so make a new plan",
                  name, sorot::name(view.dtype), ShapeText(view).text, ShapeText(view.strides, view.rank).text);
  }
}

/// The model of a context's device: what heuristics looked at. Not which one of several, nor the stream.
inline std::uint64_t device_word(const Context& context) noexcept {
  const CudaDevice& device = ContextAccess::cuda(context);
  std::uint64_t word = 0;
  for (const std::int32_t number : {device.compute_capability, device.multiprocessors, device.shared_bytes_per_block,
                                    device.shared_bytes_per_multiprocessor, device.threads_per_multiprocessor}) {
    word = mix(word, static_cast<std::uint64_t>(number));
  }
  return word;
}

/// The plan was made on this device for args that differ only in data.
template <class Plan, class Args>
void check_plan(Check& check, const Context& context, const Plan& plan, const Args& args) noexcept {
  check.require(plan.kernel != nullptr, "plan is empty: make it first (attention_plan and its like)");
  if (!check.ok()) return;
  check.require(std::strcmp(plan.device, context.device_name()) == 0, "plan was made for device %s, not for %s",
                plan.device, context.device_name());
  check.require(plan.key.device == device_word(context), "plan was made for another model of %s device than this one",
                plan.device);
  const typename Plan::Key key = make_key<Plan>(args);
  std::size_t i = 0;
  for_each_field(args, [&](const char* name, const auto& field) {
    if (key.fields[i] != plan.key.fields[i]) refuse_field(check, name, field);
    check.require(key.alignment[i] >= plan.key.alignment[i], "%s has data aligned to %d bytes, expected %d as planned",
                  name, 1 << key.alignment[i], 1 << plan.key.alignment[i]);
    ++i;
  });
}

/// The context's entry for an operator, or why it has none: find_backend(context, &Backend::attention, "attention",
/// ...).
template <class Entry>
Status find_backend(const Context& context, const Entry* Backend::*op, const char* name, const Entry*& entry) noexcept {
  const Backend* backend = ContextAccess::backend(context);
  if (backend == nullptr) return {StatusCode::kNoDevice, "the context has no device; make one by Context::reference()"};
  entry = backend->*op;
  if (entry == nullptr) return make_status(StatusCode::kUnsupported, "device %s has no %s", backend->info.name, name);
  return {};
}

/// Lets the backend choose a kernel, and notes what the plan was made for. On failure `plan` is left as it was.
template <class Entry, class Problem, class Args, class Plan>
Status make_plan(const Context& context, const Entry& entry, const Problem& problem, const Args& args,
                 const PlanHint& hint, Plan& plan) noexcept {
  Plan made;
  if (Status s = entry.plan(context, problem, hint, made); !s.ok()) return s;
  made.workspace_bytes = round_up_workspace(made.workspace_bytes);
  made.device = context.device_name();
  made.key = make_key<Plan>(args);
  made.key.device = device_word(context);
  plan = made;
  return {};
}

}  // namespace sorot::inline v0::core
