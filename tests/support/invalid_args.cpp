#include "tests/support/invalid_args.h"

#include <cmath>
#include <cstdint>
#include <limits>

namespace sorot::support {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class View>
bool present(const View& view) {
  return view.dtype != DType::none;
}

template <class View>
bool has_elements(const View& view) {
  for (int d = 0; d < view.rank; ++d) {
    if (view.shape[d] == 0) return false;
  }
  return present(view);
}

template <class View>
bool null_data(View& view) {
  if (!has_elements(view)) return false;
  view.data = nullptr;
  return true;
}

template <class View>
bool another_dtype(View& view, DType dtype) {
  if (!present(view)) return false;
  view.dtype = dtype;
  return true;
}

template <class View>
bool longer(View& view, int dim) {
  if (!present(view)) return false;
  ++view.shape[dim];
  return true;
}

template <class View>
bool beyond_the_address_space(View& view) {
  if (!has_elements(view)) return false;
  for (int d = 0; d < view.rank; ++d) {
    if (view.shape[d] > 1) {
      view.strides[d] = std::int64_t{1} << 62;
      return true;
    }
  }
  return false;
}

template <class View>
bool misaligned(View& view) {
  if (!has_elements(view) || size_of(view.dtype) < 2) return false;
  view.data = static_cast<char*>(const_cast<void*>(static_cast<const void*>(view.data))) + 1;
  return true;
}

bool aliased(TensorView& view) {
  for (int d = 0; d < view.rank; ++d) {
    if (has_elements(view) && view.shape[d] > 1) {
      view.strides[d] = 0;
      return true;
    }
  }
  return false;
}

}  // namespace

const std::vector<InvalidArgs>& invalid_args() {
  using Args = AttentionArgs;
  static const std::vector<InvalidArgs> list{
      {"q missing", [](Args& a) { return a.q = {}, true; }},
      {"k missing", [](Args& a) { return a.k = {}, true; }},
      {"v missing", [](Args& a) { return a.v = {}, true; }},
      {"out missing", [](Args& a) { return a.out = {}, true; }},
      {"q null", [](Args& a) { return null_data(a.q); }},
      {"k null", [](Args& a) { return null_data(a.k); }},
      {"v null", [](Args& a) { return null_data(a.v); }},
      {"out null", [](Args& a) { return null_data(a.out); }},
      {"lse null", [](Args& a) { return null_data(a.lse); }},
      {"mask null", [](Args& a) { return null_data(a.mask); }},
      {"q of another dtype", [](Args& a) { return another_dtype(a.q, DType::i32); }},
      {"k of another dtype",
       [](Args& a) { return another_dtype(a.k, a.q.dtype == DType::f16 ? DType::bf16 : DType::f16); }},
      {"mask of f32", [](Args& a) { return another_dtype(a.mask, DType::f32); }},
      {"bias of i32", [](Args& a) { return another_dtype(a.bias, DType::i32); }},
      {"lengths of i64", [](Args& a) { return another_dtype(a.kv_lengths, DType::i64); }},
      {"slopes of f64", [](Args& a) { return another_dtype(a.alibi_slopes, DType::f64); }},
      {"sinks of bf16", [](Args& a) { return another_dtype(a.sinks, DType::bf16); }},
      {"lse of f16", [](Args& a) { return another_dtype(a.lse, DType::f16); }},
      {"weights of bool", [](Args& a) { return another_dtype(a.weights, DType::boolean); }},
      {"k with a longer D", [](Args& a) { return longer(a.k, 3); }},
      {"v with more keys", [](Args& a) { return longer(a.v, 2); }},
      {"out with more queries", [](Args& a) { return longer(a.out, 2); }},
      {"lengths for another batch", [](Args& a) { return longer(a.kv_lengths, 0); }},
      {"slopes for another head count", [](Args& a) { return longer(a.alibi_slopes, 0); }},
      {"sinks for another head count", [](Args& a) { return longer(a.sinks, 0); }},
      {"q with a negative size", [](Args& a) { return a.q.shape[2] = -1, true; }},
      {"k outside the address space", [](Args& a) { return beyond_the_address_space(a.k); }},
      {"out outside the address space", [](Args& a) { return beyond_the_address_space(a.out); }},
      {"q misaligned", [](Args& a) { return misaligned(a.q); }},
      {"out misaligned", [](Args& a) { return misaligned(a.out); }},
      {"out with aliased elements", [](Args& a) { return aliased(a.out); }},
      {"weights with aliased elements", [](Args& a) { return aliased(a.weights); }},
      {"lse with aliased elements", [](Args& a) { return aliased(a.lse); }},
      {"out over q", [](Args& a) { return has_elements(a.q) && has_elements(a.out) && (a.q.data = a.out.data, true); }},
      {"out over v", [](Args& a) { return has_elements(a.v) && has_elements(a.out) && (a.v.data = a.out.data, true); }},
      {"align of no meaning", [](Args& a) { return a.align = static_cast<Align>(7), true; }},
      {"offsets without align", [](Args& a) { return present(a.offsets) && (a.align = Align::top_left, true); }},
      {"align without offsets", [](Args& a) { return present(a.offsets) && (a.offsets = {}, true); }},
      {"window left of -2", [](Args& a) { return a.window.left = -2, true; }},
      {"window right of -3", [](Args& a) { return a.window.right = -3, true; }},
      {"scale NaN", [](Args& a) { return a.scale = kNaN, true; }},
      {"scale infinite", [](Args& a) { return a.scale = std::numeric_limits<double>::infinity(), true; }},
      {"softcap negative", [](Args& a) { return a.softcap = -1, true; }},
      {"softcap NaN", [](Args& a) { return a.softcap = kNaN, true; }},
  };
  return list;
}

}  // namespace sorot::support
