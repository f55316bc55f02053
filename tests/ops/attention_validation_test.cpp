#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/ops/devices.h"
#include "tests/support/attention_problem.h"

/// Bad args: each is refused with its code, a message that has the offending value, and outputs untouched.
namespace sorot::support {
namespace {

/// Does not compile once AttentionArgs has another number of fields: give the new one its place in this list, in
/// kFields below, and at least one bad value in bad_args().
constexpr std::size_t count_fields() {
  using Fields = decltype([] {
    AttentionArgs args;
    auto& [q, k, v, out, kv_lengths, align, offsets, causal, window, mask, scale, softcap, bias, alibi_slopes, sinks,
           lse, weights] = args;
    return std::tuple(&q, &k, &v, &out, &kv_lengths, &align, &offsets, &causal, &window, &mask, &scale, &softcap, &bias,
                      &alibi_slopes, &sinks, &lse, &weights);
  }());
  return std::tuple_size_v<Fields>;
}

constexpr const char* kFields[] = {"q",      "k",      "v",      "out",   "kv_lengths", "align", "offsets",
                                   "causal", "window", "mask",   "scale", "softcap",    "bias",  "alibi_slopes",
                                   "sinks",  "lse",    "weights"};
static_assert(std::size(kFields) == count_fields() && count_fields() == kAttentionFields,
              "AttentionArgs has a field without a case of validation");

/// A sound problem with every optional tensor, so that each can be spoiled.
struct Sound {
  Sound() : p({2, 4, 2, 3, 5, 8, 6}), mask(new bool[15]) {
    std::fill(mask.get(), mask.get() + 15, true);
    p.args.kv_lengths = view(static_cast<const std::int32_t*>(lengths), {2});
    p.args.align = Align::offsets;
    p.args.offsets = view(static_cast<const std::int32_t*>(offsets), {2});
    p.args.mask = view(static_cast<const bool*>(mask.get()), {3, 5});
    p.args.bias = view(static_cast<const float*>(bias), {5});
    p.args.alibi_slopes = view(static_cast<const float*>(slopes), {4});
    p.args.sinks = view(static_cast<const float*>(sinks), {4});
  }
  bool untouched() const {
    const auto all_nan = [](const std::vector<float>& x) {
      return std::all_of(x.begin(), x.end(), [](float e) { return std::isnan(e); });
    };
    return all_nan(p.out_data) && all_nan(p.lse_data) && all_nan(p.weights_data);
  }

  AttentionProblemF32 p;
  std::int32_t lengths[2] = {4, 5};
  std::int32_t offsets[2] = {1, -1};
  std::unique_ptr<bool[]> mask;
  float bias[5] = {};
  float slopes[4] = {};
  float sinks[4] = {};
};

/// One way to be wrong.
struct Bad {
  const char* field;
  std::function<void(Sound&, AttentionArgs&)> spoil;
  const char* message;  ///< must be part of what the Status says
};

constexpr double kHuge = 1e300;  // no f32
constexpr double kNaN64 = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kFar = std::int64_t{1} << 62;

template <class View>
View resized(View view, int dim, std::int64_t size) {
  view.shape[dim] = size;
  return view;
}

template <class View>
View moved(View view, std::ptrdiff_t bytes) {
  view.data = static_cast<char*>(const_cast<void*>(static_cast<const void*>(view.data))) + bytes;
  return view;
}

template <class View>
View retyped(View view, DType dtype) {
  view.dtype = dtype;
  return view;
}

template <class View>
View null(View view) {
  view.data = nullptr;
  return view;
}

using A = AttentionArgs;

/// What can be wrong with any tensor, said for each: the name of the field, its view, its first size.
template <class View>
void add_tensor_faults(std::vector<Bad>& list, const char* field, View A::*view, bool required,
                       const char* null_shape) {
  if (required) list.push_back({field, [=](Sound&, A& a) { a.*view = {}; }, "is missing"});
  list.push_back({field, [=](Sound&, A& a) { a.*view = null(a.*view); }, null_shape});
  list.push_back({field, [=](Sound&, A& a) { (a.*view).dtype = static_cast<DType>(99); }, "(99)"});
  list.push_back({field, [=](Sound&, A& a) { a.*view = retyped(a.*view, DType::i64); }, "i64"});
  list.push_back({field, [=](Sound&, A& a) { (a.*view).rank = 5; }, "5"});
  list.push_back({field, [=](Sound&, A& a) { (a.*view).rank = -1; }, "-1"});
  list.push_back({field, [=](Sound&, A& a) { a.*view = resized(a.*view, 0, -3); }, "[-3"});
  list.push_back({field, [=](Sound&, A& a) { a.*view = resized(a.*view, 0, 77); }, "77"});
  list.push_back({field, [=](Sound&, A& a) { (a.*view).strides[0] = kFar; }, "4611686018427387904"});
  list.push_back({field, [=](Sound&, A& a) { (a.*view).strides[0] = -kFar; }, "-4611686018427387904"});
  list.push_back({field, [=](Sound&, A& a) { a.*view = (a.*view).slice(7, 0, 1); }, "slice: no such dimension"});
  list.push_back({field, [=](Sound&, A& a) { (a.*view).data = nullptr, (a.*view).shape[0] = 0, (a.*view).rank = 0; },
                  "null data"});
  list.push_back({field,
                  [=](Sound&, A& a) {  // half set: a dtype and nothing else
                    a.*view = {};
                    (a.*view).dtype = DType::f32;
                  },
                  field});
}

std::vector<Bad> bad_args() {
  std::vector<Bad> list;
  add_tensor_faults(list, "q", &A::q, true, "[2, 4, 3, 8]");
  add_tensor_faults(list, "k", &A::k, true, "[2, 2, 5, 8]");
  add_tensor_faults(list, "v", &A::v, true, "[2, 2, 5, 6]");
  add_tensor_faults(list, "out", &A::out, true, "[2, 4, 3, 6]");
  add_tensor_faults(list, "kv_lengths", &A::kv_lengths, false, "[2]");
  add_tensor_faults(list, "offsets", &A::offsets, true, "[2]");
  add_tensor_faults(list, "mask", &A::mask, false, "[3, 5]");
  add_tensor_faults(list, "bias", &A::bias, false, "[5]");
  add_tensor_faults(list, "alibi_slopes", &A::alibi_slopes, false, "[4]");
  add_tensor_faults(list, "sinks", &A::sinks, false, "[4]");
  add_tensor_faults(list, "lse", &A::lse, false, "[2, 4, 3]");
  add_tensor_faults(list, "weights", &A::weights, false, "[2, 4, 3, 5]");

  const auto add = [&](const char* field, std::function<void(A&)> spoil, const char* message) {
    list.push_back({field, [spoil = std::move(spoil)](Sound&, A& a) { spoil(a); }, message});
  };
  add(
      "q", [](A& a) { a.q = moved(a.q, 1); }, "expected a multiple of 4 bytes");
  add(
      "out", [](A& a) { a.out = moved(a.out, 2); }, "expected a multiple of 4 bytes");
  add(
      "kv_lengths", [](A& a) { a.kv_lengths = moved(a.kv_lengths, 2); }, "expected a multiple of 4 bytes");
  add(
      "q",
      [](A& a) {
        a.q = a.q.permute({0, 1, 1, 3});
      },
      "permute: order does not name each dimension once");
  add(
      "q", [](A& a) { a.q = retyped(a.q, DType::f16); }, "f16");
  add(
      "q", [](A& a) { a.q = retyped(a.q, DType::boolean); }, "bool");
  add(
      "q", [](A& a) { a.q = resized(a.q, 3, 0); }, "[2, 4, 3, 0]");
  add(
      "q", [](A& a) { a.q = resized(a.q, 1, 5); }, "5 query heads are not a multiple of 2 kv heads");
  add(
      "k", [](A& a) { a.k = resized(a.k, 1, 0), a.v = resized(a.v, 1, 0); }, "4 query heads have 0 kv heads");
  add(
      "k", [](A& a) { a.k = resized(a.k, 3, 7); }, "[2, 2, 5, 7]");
  add(
      "k", [](A& a) { a.k = retyped(a.k, DType::bf16); }, "bf16");
  add(
      "v", [](A& a) { a.v = resized(a.v, 2, 6); }, "[2, 2, 6, 6]");
  add(
      "v", [](A& a) { a.v = resized(a.v, 3, 0); }, "[2, 2, 5, 0]");
  add(
      "v", [](A& a) { a.v = retyped(a.v, DType::f64); }, "f64");
  add(
      "out", [](A& a) { a.out = resized(a.out, 3, 8); }, "[2, 4, 3, 8]");
  add(
      "out", [](A& a) { a.out = retyped(a.out, DType::f16); }, "f16");
  add(
      "out", [](A& a) { a.out.strides[2] = 0; }, "elements overlap");
  add(
      "out", [](A& a) { a.out.strides[1] = a.out.strides[0]; }, "elements overlap");
  add(
      "out", [](A& a) { a.out.data = const_cast<void*>(a.q.data); }, "out overlaps q");
  add(
      "out", [](A& a) { a.out.data = const_cast<void*>(a.v.data); }, "out overlaps ");  // v, and what lies behind it
  add(
      "out", [](A& a) { a.out.data = a.weights.data; }, "out overlaps ");
  add(
      "kv_lengths", [](A& a) { a.kv_lengths = resized(a.kv_lengths, 0, 3); }, "[3]");
  add(
      "kv_lengths", [](A& a) { a.kv_lengths = retyped(a.kv_lengths, DType::f32); }, "f32");
  add(
      "align", [](A& a) { a.align = static_cast<Align>(3); }, "3");
  add(
      "align", [](A& a) { a.align = Align::top_left; }, "top_left");
  add(
      "align", [](A& a) { a.align = Align::bottom_right; }, "bottom_right");
  add(
      "offsets", [](A& a) { a.offsets = resized(a.offsets, 0, 1); }, "[1]");
  add(
      "window", [](A& a) { a.window.left = -2; }, "window.left is -2");
  add(
      "window", [](A& a) { a.window.right = std::numeric_limits<std::int32_t>::min(); }, "window.right is -2147483648");
  add(
      "mask", [](A& a) { a.mask = resized(a.mask, 1, 4); }, "[3, 4]");
  add(
      "mask", [](A& a) { a.mask = retyped(a.mask, DType::i32); }, "i32");
  add(
      "scale", [](A& a) { a.scale = kNaN64; }, "nan");
  add(
      "scale", [](A& a) { a.scale = -std::numeric_limits<double>::infinity(); }, "-inf");
  add(
      "scale", [](A& a) { a.scale = kHuge; }, "1e+300");
  add(
      "softcap", [](A& a) { a.softcap = -0.5; }, "-0.5");
  add(
      "softcap", [](A& a) { a.softcap = kNaN64; }, "nan");
  add(
      "softcap", [](A& a) { a.softcap = kHuge; }, "1e+300");
  add(
      "softcap", [](A& a) { a.softcap = 1e-300; }, "1e-300");
  add(
      "bias", [](A& a) { a.bias = retyped(a.bias, DType::f16); }, "f16");
  add(
      "bias", [](A& a) { a.bias = resized(a.bias, 0, 3); }, "[3]");
  add(
      "alibi_slopes", [](A& a) { a.alibi_slopes = resized(a.alibi_slopes, 0, 2); }, "[2]");
  add(
      "sinks", [](A& a) { a.sinks = retyped(a.sinks, DType::f64); }, "f64");
  add(
      "lse", [](A& a) { a.lse = retyped(a.lse, DType::f64); }, "f64");
  add(
      "lse", [](A& a) { a.lse.strides[2] = 0; }, "elements overlap");
  add(
      "lse", [](A& a) { a.lse.data = a.out.data; }, "overlaps");
  add(
      "weights", [](A& a) { a.weights = retyped(a.weights, DType::bf16); }, "bf16");
  add(
      "weights", [](A& a) { a.weights.data = const_cast<void*>(a.k.data); }, "overlaps");
  add(
      "weights", [](A& a) { a.weights.strides[3] = -5; }, "elements overlap");
  return list;
}

class AttentionValidation : public OnEveryDevice {};
SOROT_ON_EVERY_DEVICE(AttentionValidation);

TEST_P(AttentionValidation, TheSoundProblemIsSound) {
  Sound sound;
  const Status status = sound.p.run(device_);
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_P(AttentionValidation, EveryBadValueIsRefusedByCodeAndByName) {
  std::set<std::string> fields{"causal"};  // a bool: no value of it is wrong
  for (const Bad& bad : bad_args()) {
    Sound sound;
    AttentionPlan sound_plan;
    ASSERT_TRUE(attention_plan(context_, sound.p.args, sound_plan).ok());
    AttentionArgs args = sound.p.args;
    bad.spoil(sound, args);
    AttentionPlan plan;
    std::vector<char> scratch(1 << 16);
    auto* aligned = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 255) / 256 * 256);
    const Workspace workspace{aligned, 1 << 14};
    const auto refused = [&](const Status& status, bool names_value) {
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument)
          << bad.field << " (" << bad.message << "): " << name(status.code());
      const bool found = std::string(status.message()).find(bad.message) != std::string::npos;
      EXPECT_TRUE(found || !names_value) << bad.field << ": '" << status.message() << "' lacks '" << bad.message << "'";
    };
    refused(attention_plan(context_, args, plan), true);
    refused(attention(context_, args, workspace), true);
    refused(attention(context_, sound_plan, args, workspace), false);  // may also say that the plan is another's
    EXPECT_EQ(plan.kernel, nullptr) << bad.field;
    EXPECT_TRUE(sound.untouched()) << bad.field;
    fields.insert(bad.field);
  }
  for (const char* field : kFields) EXPECT_TRUE(fields.contains(field)) << field << " has no bad value";
}

TEST_P(AttentionValidation, FieldCase35ABadGroupIsAStatus) {
  AttentionProblemF32 p({1, 5, 2, 1, 1, 1, 1});
  const Status status = p.run(device_);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(std::string(status.message()).starts_with("5 query heads are not a multiple of 2 kv heads"))
      << status.message();
}

TEST_P(AttentionValidation, InterleavedOutputsAreRefused) {
  // lse and out share a range without sharing an element: simpler to forbid than to get right on every backend.
  AttentionProblemF32 p({1, 1, 1, 4, 4, 4, 1});
  std::vector<float> shared(8, kNan);
  p.args.out = view(shared.data(), {1, 1, 4, 1}).with_strides({8, 8, 2, 1});
  p.args.lse = view(shared.data() + 1, {1, 1, 4}).with_strides({8, 8, 2});
  const Status status = p.run(device_);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("out overlaps lse"), std::string::npos) << status.message();
  p.args.lse = {};
  EXPECT_TRUE(p.run(device_).ok());
}

TEST_P(AttentionValidation, AnInputBetweenTheRowsOfOutIsRefused) {
  AttentionProblemF32 p({1, 1, 1, 4, 4, 2, 2});
  std::vector<float> shared(16, 0.5F);
  p.args.out = view(shared.data(), {1, 1, 4, 2}).with_strides({16, 16, 4, 1});
  p.args.q = view(shared.data() + 2, {1, 1, 4, 2}).with_strides({16, 16, 4, 1});
  EXPECT_EQ(p.run(device_).code(), StatusCode::kInvalidArgument);
}

TEST_P(AttentionValidation, InputsMayOverlapEachOther) {
  AttentionProblemF32 p({1, 2, 2, 4, 4, 4, 4});
  p.args.k = p.args.v = p.args.q;
  EXPECT_TRUE(p.run(device_).ok());
}

TEST_P(AttentionValidation, EmptyTensorsNeedNoMemory) {
  for (const int empty : {0, 1, 2}) {
    AttentionProblemF32 p({empty == 0 ? 0 : 2, empty == 1 ? 0 : 2, 2, empty == 2 ? 0 : 3, 4, 4, 4});
    void* nowhere = reinterpret_cast<void*>(std::uintptr_t{3});  // not even aligned: nobody may look
    p.args.q.data = p.args.out.data = p.args.lse.data = p.args.weights.data = nowhere;
    const Status status = p.run(device_);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  AttentionProblemF32 p({2, 2, 2, 3, 0, 4, 4});
  p.args.k.data = p.args.v.data = nullptr;
  const Status status = p.run(device_);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(p.out(1, 1, 2, 3), 0.0F);
  EXPECT_EQ(p.lse(1, 1, 2), -kInf);
}

}  // namespace
}  // namespace sorot::support
