#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Runs every file of the given folders through a fuzz target, without libFuzzer: any compiler, same invariants.
int main(int argc, char** argv) {
  std::size_t count = 0;
  for (int i = 1; i < argc; ++i) {
    std::vector<std::filesystem::path> paths(std::filesystem::directory_iterator(argv[i]), {});
    std::sort(paths.begin(), paths.end());
    for (const std::filesystem::path& path : paths) {
      std::printf("%s\n", path.c_str());
      std::fflush(stdout);  // the last line names the input of a crash
      std::ifstream file(path, std::ios::binary);
      const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      ++count;
    }
  }
  std::printf("%zu inputs\n", count);
  return count == 0 ? 1 : 0;
}
