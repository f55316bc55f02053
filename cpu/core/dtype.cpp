#include "sorot/dtype.h"

namespace sorot::inline v0 {

std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::none: return 0;
    case DType::f64: return 8;
    case DType::f32: return 4;
    case DType::f16: return 2;
    case DType::bf16: return 2;
    case DType::i64: return 8;
    case DType::i32: return 4;
    case DType::boolean: return 1;
  }
  return 0;
}

const char* name(DType dtype) noexcept {
  switch (dtype) {
    case DType::none: return "none";
    case DType::f64: return "f64";
    case DType::f32: return "f32";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::i64: return "i64";
    case DType::i32: return "i32";
    case DType::boolean: return "bool";
  }
  return "unknown DType";
}

}  // namespace sorot::inline v0
