#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sorot/dtype.h"
#include "sorot/tensor.h"
#include "tools/sorot/buffer.h"

/// NumPy's .npy files (format: numpy/lib/format.py), strictly: one array of `<f2 <f4 <f8 <i4 <i8 |b1`, rank <= 4, in
/// either order, and not a byte more or less than its header says. Everything else is a Failure with kBadInput whose
/// message begins with the file's name.
namespace sorot::tools {

/// What a file says of its array.
struct NpyHeader {
  DType dtype = DType::none;  ///< f16, f32, f64, i32, i64 or boolean
  bool fortran_order = false;
  std::int32_t rank = 0;
  std::int64_t shape[kMaxRank] = {};
  std::size_t data_offset = 0;  ///< bytes before the elements
  std::size_t data_bytes = 0;   ///< bytes of all elements

  std::span<const std::int64_t> sizes() const { return {shape, static_cast<std::size_t>(rank)}; }
};

/// "<f4" and so on; "?" for a dtype that files do not have.
std::string_view npy_name(DType dtype);

/// "(2, 3)", as Python writes a tuple.
std::string npy_shape(std::span<const std::int64_t> shape);

/// Where the elements of a file begin, from its first bytes: `start` has 12 of them, or the whole of a shorter file.
std::size_t npy_data_offset(std::string_view name, std::span<const std::byte> start, std::uint64_t file_bytes);

/// Every dtype a file may have.
inline constexpr DType kNpyTypes[] = {DType::f16, DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean};

/// The header of a file of `file_bytes`, from `start`, its bytes up to the elements or more. Its dtype is one of
/// `accepted`.
NpyHeader parse_npy(std::string_view name, std::span<const std::byte> start, std::uint64_t file_bytes,
                    std::span<const DType> accepted = kNpyTypes);

/// A view of the elements, laid out as the header says. `dtype` is what they have become.
TensorView npy_view(const NpyHeader& header, void* elements, DType dtype);

/// The bytes before the elements, as numpy.save writes them: version 1.0, padded to a multiple of 64.
std::string format_npy_header(DType dtype, std::span<const std::int64_t> shape);

struct NpyArray {
  NpyHeader header;
  Buffer data;
};

/// Reads a regular file. `name` is what messages call it: "--q q.npy". Memory stays within the file's size.
NpyArray read_npy(std::string_view name, const std::string& path, std::span<const DType> accepted = kNpyTypes);

}  // namespace sorot::tools
