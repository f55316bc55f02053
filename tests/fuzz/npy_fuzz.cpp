#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "tools/sorot/npy.h"

/// Bytes -> .npy reader: it refuses with a message or yields an array that accounts for every byte, whose view stays
/// inside it, which is the same through a file, and which survives writing and reading back.
namespace {

using namespace sorot;
using namespace sorot::tools;

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "invariant broken: %s\n", what);
  std::abort();
}

/// A file of these bytes that exists only in memory.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::byte> bytes) : descriptor_(memfd_create("npy", MFD_CLOEXEC)) {
    const ssize_t put = write(descriptor_, bytes.data(), bytes.size());
    expect(put == static_cast<ssize_t>(bytes.size()), "a memory file can be written");
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(descriptor_); }
  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

 private:
  int descriptor_;
};

bool parse(std::span<const std::byte> file, NpyHeader& header) {
  try {
    header = parse_npy("fuzz.npy", file, file.size());
    return true;
  } catch (const Failure& failure) {
    expect(failure.exit_code == ExitCode::kBadInput, "a malformed file is bad input");
    expect(std::strncmp(failure.what(), "fuzz.npy ", 9) == 0, "a message begins with the file's name");
    return false;
  }
}

bool read(const MemoryFile& file, NpyArray& array) {
  try {
    array = read_npy("fuzz.npy", file.path());
    return true;
  } catch (const Failure&) {
    return false;
  }
}

bool same_array(const NpyHeader& a, const NpyHeader& b) {
  return a.dtype == b.dtype && a.rank == b.rank && std::memcmp(a.shape, b.shape, sizeof a.shape) == 0 &&
         a.data_bytes == b.data_bytes;
}

/// Its highest element is the last of the data: no stride leads outside, none falls short.
void check_view(const NpyHeader& header) {
  if (header.data_bytes == 0) return;
  const TensorView view = npy_view(header, nullptr, header.dtype);
  std::int64_t last = 0;
  for (int d = 0; d < view.rank; ++d) last += (view.shape[d] - 1) * view.strides[d];
  expect(static_cast<std::size_t>(last + 1) * size_of(header.dtype) == header.data_bytes, "a view fits its elements");
}

void check_round_trip(const NpyHeader& header, std::span<const std::byte> elements) {
  std::string text = format_npy_header(header.dtype, header.sizes());
  expect(text.size() % 64 == 0, "a written header is padded to 64");
  text.append(reinterpret_cast<const char*>(elements.data()), elements.size());
  NpyHeader again;
  expect(parse(std::as_bytes(std::span(text)), again), "a written file can be read");
  expect(same_array(header, again), "a written file says the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  NpyHeader header;
  NpyArray array;
  const bool parsed = parse(file, header);
  expect(read(MemoryFile(file), array) == parsed, "a file and its bytes are accepted alike");
  if (!parsed) return 0;

  expect(header.data_offset + header.data_bytes == size, "every byte is accounted for");
  const std::span<const std::byte> elements = file.subspan(header.data_offset);
  expect(same_array(header, array.header), "a file and its bytes say the same");
  expect(array.data.bytes() == elements.size(), "all elements are read, and no more memory is taken");
  expect(elements.empty() || std::memcmp(array.data.data(), elements.data(), elements.size()) == 0,
         "elements are read as they are");
  check_view(header);
  check_round_trip(header, elements);
  return 0;
}
