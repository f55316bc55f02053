#pragma once

#include <string>
#include <string_view>

namespace sorot::tests {

/// A header dictionary that is right: two floats.
inline constexpr std::string_view kTwoFloats = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";

/// The bytes of a .npy file with this dictionary, whatever it says, and so many bytes of elements.
inline std::string npy_bytes(std::string_view dictionary, std::size_t data_bytes, int major = 1, int minor = 0) {
  std::string header(dictionary);
  header += '\n';
  std::string file = "\x93NUMPY";
  file += {static_cast<char>(major), static_cast<char>(minor)};
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) file += static_cast<char>(header.size() >> 8 * i & 0xFF);
  return file + header + std::string(data_bytes, '\0');
}

/// `text` with its one occurrence of `from` replaced.
inline std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result(text);
  return result.replace(result.find(from), from.size(), to);
}

}  // namespace sorot::tests
