#include "tools/sorot/npy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace sorot::tools {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlign = 64;

struct NpyType {
  std::string_view name;
  DType dtype;
};
constexpr NpyType kTypes[] = {{"<f2", DType::f16}, {"<f4", DType::f32}, {"<f8", DType::f64},
                              {"<i4", DType::i32}, {"<i8", DType::i64}, {"|b1", DType::boolean}};

/// "<f2, <f4 or <f8"
std::string type_names(std::span<const DType> dtypes) {
  std::string names;
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : i + 1 == dtypes.size() ? " or " : ", ", npy_name(dtypes[i]));
  }
  return names;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Reads the header's dictionary, a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderParser {
 public:
  HeaderParser(std::string_view file, std::string_view text, std::span<const DType> accepted)
      : file_(file), rest_(text), accepted_(accepted) {}

  NpyHeader parse() {
    NpyHeader header;
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{', "the header's dictionary");
    while (!accept('}')) {
      const std::string_view key = quoted("a key");
      expect(':', "a ':' behind a key");
      if (key == "descr") {
        once(key, has_descr);
        header.dtype = parse_dtype();
      } else if (key == "fortran_order") {
        once(key, has_order);
        header.fortran_order = parse_bool();
      } else if (key == "shape") {
        once(key, has_shape);
        parse_shape(header);
      } else {
        fail("has '{}' in its header, expected just descr, fortran_order and shape", key);
      }
      if (accept(',')) continue;
      expect('}', "a ',' or '}' behind a value");
      break;
    }
    skip_space();
    if (!rest_.empty()) fail("has '{}' behind its header's dictionary, expected spaces", excerpt());
    if (!has_descr) fail("has no descr (its dtype) in its header");
    if (!has_order) fail("has no fortran_order in its header");
    if (!has_shape) fail("has no shape in its header");
    return header;
  }

 private:
  template <class... Values>
  [[noreturn]] void fail(fmt::format_string<Values...> format, Values&&... values) const {
    refuse("{} {}", file_, fmt::format(format, std::forward<Values>(values)...));
  }

  std::string_view excerpt() const { return rest_.substr(0, std::min<std::size_t>(rest_.find('\n'), 24)); }

  void skip_space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\n' || rest_[0] == '\r')) {
      rest_.remove_prefix(1);
    }
  }

  bool accept(char c) {
    skip_space();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char c, std::string_view what) {
    if (!accept(c)) fail("has '{}' in its header, expected {}", excerpt(), what);
  }

  bool accept_word(std::string_view word) {
    skip_space();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  void once(std::string_view key, bool& seen) const {
    if (seen) fail("has {} twice in its header", key);
    seen = true;
  }

  std::string_view quoted(std::string_view what) {
    skip_space();
    const char quote = rest_.empty() ? '\0' : rest_[0];
    const std::size_t end = quote == '\'' || quote == '"' ? rest_.find(quote, 1) : std::string_view::npos;
    if (end == std::string_view::npos) fail("has '{}' in its header, expected {} in quotes", excerpt(), what);
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }

  DType parse_dtype() {
    skip_space();
    if (rest_.starts_with('[')) fail("has the structured dtype {}, expected {}", excerpt(), type_names(accepted_));
    const std::string_view text = quoted("a dtype");
    for (const DType dtype : accepted_) {
      if (npy_name(dtype) == text) return dtype;
    }
    fail("has dtype '{}', expected {}", text, type_names(accepted_));
  }

  bool parse_bool() {
    if (accept_word("True")) return true;
    if (accept_word("False")) return false;
    fail("has fortran_order '{}', expected True or False", excerpt());
  }

  void parse_shape(NpyHeader& header) {
    const auto malformed = [&] { fail("has '{}' in its shape, expected whole numbers in a tuple", excerpt()); };
    if (!accept('(')) malformed();
    bool comma = false;
    while (!accept(')')) {
      if (header.rank > 0 && !comma) malformed();
      if (header.rank == kMaxRank) fail("has a shape of more than {} dimensions, expected at most that", kMaxRank);
      header.shape[header.rank++] = parse_size();
      comma = accept(',');
    }
    if (header.rank == 1 && !comma) fail("has a number as its shape, expected a tuple: ({},)", header.shape[0]);
  }

  std::int64_t parse_size() {
    skip_space();
    const std::size_t length = std::min(rest_.find_first_of(",) \t\r\n"), rest_.size());
    const std::string_view text = rest_.substr(0, std::min<std::size_t>(length, 24));
    const bool negative = text.starts_with('-');
    const std::string_view digits = text.substr(negative ? 1 : 0);
    const bool number = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
    if (!number || (digits.size() > 1 && digits[0] == '0')) {
      fail("has '{}' in its shape, expected whole numbers in a tuple", text);
    }
    if (negative) fail("has the negative size {} in its shape", text);
    std::int64_t size = 0;
    bool overflow = false;
    for (const char digit : digits) {
      overflow |= __builtin_mul_overflow(size, 10, &size) || __builtin_add_overflow(size, digit - '0', &size);
    }
    if (overflow) fail("has the size {} in its shape, more than 64 bits hold", text);
    rest_.remove_prefix(length);
    return size;
  }

  std::string_view file_;
  std::string_view rest_;
  std::span<const DType> accepted_;
};

/// Bytes of all elements, or false if 64 bits do not hold them. Exact whatever the other sizes if one is 0.
bool count_bytes(const NpyHeader& header, std::size_t& bytes) {
  bytes = size_of(header.dtype);
  bool overflow = false;
  for (int d = 0; d < header.rank; ++d) {
    if (header.shape[d] == 0) {
      bytes = 0;
      return true;
    }
    overflow |= __builtin_mul_overflow(bytes, static_cast<std::size_t>(header.shape[d]), &bytes);
  }
  return !overflow;
}

/// An open file that closes itself.
class InputFile {
 public:
  InputFile(std::string_view name, const std::string& path) : name_(name) {
    // O_NONBLOCK: opening a pipe that nobody writes to must not wait for ever.
    descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor_ < 0) refuse("{} cannot be read: {}", name_, std::strerror(errno));
    struct stat status {};
    if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
      const bool directory = S_ISDIR(status.st_mode);
      close(descriptor_);
      refuse("{} is {}, expected a .npy file", name_, directory ? "a directory" : "not a regular file");
    }
    bytes_ = static_cast<std::uint64_t>(status.st_size);
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile() { close(descriptor_); }

  std::uint64_t bytes() const { return bytes_; }

  /// Reads exactly that many of the next bytes.
  void read_next(std::byte* to, std::size_t count) {
    while (count > 0) {
      const std::size_t got = read_some(to, count);
      if (got == 0) refuse("{} became shorter while it was read", name_);
      to += got;
      count -= got;
    }
  }

  void expect_end() {
    std::byte one{};
    if (read_some(&one, 1) != 0) refuse("{} became longer while it was read", name_);
  }

 private:
  std::size_t read_some(std::byte* to, std::size_t count) {
    constexpr std::size_t kMost = std::size_t{1} << 30;  // Linux reads at most 2 GiB at once
    for (;;) {
      const ssize_t got = read(descriptor_, to, std::min(count, kMost));
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) refuse("{} cannot be read: {}", name_, std::strerror(errno));
    }
  }

  std::string_view name_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::string_view npy_name(DType dtype) {
  for (const NpyType& type : kTypes) {
    if (type.dtype == dtype) return type.name;
  }
  return "?";
}

std::string npy_shape(std::span<const std::int64_t> shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

std::size_t npy_data_offset(std::string_view name, std::span<const std::byte> start, std::uint64_t file_bytes) {
  const std::string_view text = as_text(start);
  if (!text.starts_with(kMagic)) refuse("{} does not begin with \\x93NUMPY, expected a .npy file", name);
  const auto byte = [&](std::size_t i) -> std::uint64_t {
    if (i >= start.size()) refuse("{} is truncated: it has {} bytes and ends inside its header", name, file_bytes);
    return std::to_integer<std::uint64_t>(start[i]);
  };
  const std::uint64_t major = byte(6);
  const std::uint64_t minor = byte(7);
  if (major < 1 || major > 3 || minor != 0) {
    refuse("{} has format version {}.{}, expected 1.0, 2.0 or 3.0", name, major, minor);
  }
  const std::uint64_t length = major == 1 ? byte(8) | byte(9) << 8  // little-endian, two bytes or four
                                          : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  const std::uint64_t offset = (major == 1 ? 10 : 12) + length;
  if (offset > file_bytes) {
    refuse("{} is truncated: it has {} bytes, expected a header up to byte {}", name, file_bytes, offset);
  }
  return static_cast<std::size_t>(offset);
}

NpyHeader parse_npy(std::string_view name, std::span<const std::byte> start, std::uint64_t file_bytes,
                    std::span<const DType> accepted) {
  const std::size_t offset = npy_data_offset(name, start, file_bytes);
  const std::size_t begin = start[6] == std::byte{1} ? 10 : 12;
  NpyHeader header = HeaderParser(name, as_text(start.subspan(begin, offset - begin)), accepted).parse();
  header.data_offset = offset;
  const std::string shape = npy_shape(header.sizes());
  const std::string_view type = npy_name(header.dtype);
  if (!count_bytes(header, header.data_bytes)) refuse("{} has shape {}, too large for any file", name, shape);
  const std::uint64_t present = file_bytes - offset;
  if (present != header.data_bytes) {
    refuse("{} {}: it has {} bytes of elements, expected {} for shape {} of {}", name,
           present < header.data_bytes ? "is truncated" : "has trailing bytes", present, header.data_bytes, shape,
           type);
  }
  return header;
}

TensorView npy_view(const NpyHeader& header, void* elements, DType dtype) {
  TensorView view(elements, dtype, header.shape, header.rank);
  if (header.fortran_order) {
    std::uint64_t stride = 1;  // wraps only if there are no elements, where no stride is ever used
    for (int d = 0; d < header.rank; ++d) {
      view.strides[d] = static_cast<std::int64_t>(stride);
      stride *= static_cast<std::uint64_t>(std::max<std::int64_t>(header.shape[d], 1));
    }
  }
  return view;
}

std::string format_npy_header(DType dtype, std::span<const std::int64_t> shape) {
  std::string dictionary =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", npy_name(dtype), npy_shape(shape));
  // NumPy leaves room to append rows in place: the first size may grow to 21 digits.
  if (!shape.empty()) dictionary.append(21 - fmt::formatted_size("{}", shape[0]), ' ');
  constexpr std::size_t kPrefix = 10;
  const std::size_t used = kPrefix + dictionary.size() + 1;
  dictionary.append(kAlign - used % kAlign, ' ');  // a whole 64 where it fits already, as NumPy does
  dictionary.push_back('\n');

  std::string header(kMagic);
  const std::size_t length = dictionary.size();
  header += {'\x01', '\x00', static_cast<char>(length & 0xFF), static_cast<char>(length >> 8)};
  return header + dictionary;
}

NpyArray read_npy(std::string_view name, const std::string& path, std::span<const DType> accepted) {
  InputFile file(name, path);
  const std::size_t have = std::min<std::uint64_t>(file.bytes(), 12);
  std::vector<std::byte> start(have);
  file.read_next(start.data(), have);
  start.resize(std::max(npy_data_offset(name, start, file.bytes()), have));
  file.read_next(start.data() + have, start.size() - have);

  NpyArray array{parse_npy(name, start, file.bytes(), accepted), {}};
  array.data = Buffer(array.header.data_bytes);
  file.read_next(array.data.data(), array.data.bytes());
  file.expect_end();
  return array;
}

}  // namespace sorot::tools
