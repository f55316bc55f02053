#pragma once

#include <cstddef>
#include <cstdint>

#include "sorot/dtype.h"

/// Elements of every DType by arithmetic on doubles alone: a second opinion on the bit twiddling of sorot/dtype.h.
namespace sorot::support {

/// x rounded to nearest even to what the type can hold: overflow gives infinity, subnormals are kept, NaN stays.
double round_to(DType dtype, double x);

/// Spacing of the type's numbers just above 1.
double ulp(DType dtype);

/// The type's largest finite number.
double largest(DType dtype);

/// Writes or reads one element at any address. A bool reads as 0 or 1, whatever its byte.
void encode(DType dtype, double value, std::byte* to);
double decode(DType dtype, const std::byte* from);

bool is_floating(DType dtype);

}  // namespace sorot::support
