// Mistakes that the public headers turn into compile errors. With REFUSED=0 this file compiles; every other value
// makes one mistake, and the compiler's messages must match what stands behind `fails by`.
#include "sorot/sorot.h"

namespace {

[[maybe_unused]] sorot::Status use(const sorot::Context& context, const float* input, float* output) {
  const sorot::ConstTensorView x = sorot::view(input, {1, 1, 3, 4});
  const sorot::TensorView out = sorot::view(output, {1, 1, 3, 4});

#if REFUSED == 1
  // fails by: could not convert|no viable conversion
  const sorot::AttentionArgs args{x, x, x, x};  // an input as the output
#else
  const sorot::AttentionArgs args{x, x, x, out};
#endif

  sorot::AttentionPlan plan;
#if REFUSED == 2
  // fails by: unused-result
  sorot::attention_plan(context, args, plan);  // the Status dropped
#else
  if (auto s = sorot::attention_plan(context, args, plan); !s.ok()) return s;
#endif

#if REFUSED == 3
  // fails by: deleted
  const sorot::Context copy = context;  // two contexts over one device's handles
#else
  const sorot::Context& copy = context;
#endif

#if REFUSED == 4
  // fails by: no DType for this pointer
  const auto mask = sorot::view(reinterpret_cast<const char*>(input), {3});  // a type that no DType stands for
#else
  const auto mask = sorot::view(reinterpret_cast<const bool*>(input), {3});
#endif
  static_cast<void>(mask);

#if REFUSED == 5
  // fails by: cannot convert|no viable conversion
  const float narrowed = sorot::float16(0.5F);  // widening is exact, but said aloud
#else
  const auto narrowed = static_cast<float>(sorot::float16(0.5F));
#endif
  static_cast<void>(narrowed);

#if REFUSED == 6
  // fails by: too few arguments|no matching function
  return sorot::attention(copy, plan, args);  // no workspace
#else
  return sorot::attention(copy, plan, args, {});
#endif
}

}  // namespace
