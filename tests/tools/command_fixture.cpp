#include "tests/tools/command_fixture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tools/sorot/npy.h"

namespace sorot::tests {
namespace {

/// Long enough for any run here, short enough to tell a hang.
constexpr unsigned kTimeLimitSeconds = 60;

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void append(std::string& bytes, DType dtype, double value) {
  const auto put = [&](auto x) { bytes.append(reinterpret_cast<const char*>(&x), sizeof x); };
  switch (dtype) {
    case DType::f16: return put(float16(value));
    case DType::f32: return put(static_cast<float>(value));
    case DType::f64: return put(value);
    case DType::i32: return put(static_cast<std::int32_t>(value));
    case DType::i64: return put(static_cast<std::int64_t>(value));
    case DType::boolean: return put(static_cast<std::uint8_t>(value));
    default: FAIL() << "files have no " << name(dtype);
  }
}

}  // namespace

void CommandTest::SetUp() {
  std::string name = std::filesystem::temp_directory_path() / "sorot_command_XXXXXX";
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  folder_ = name;
}

void CommandTest::TearDown() { std::filesystem::remove_all(folder_); }

CommandResult CommandTest::run(const std::vector<std::string>& arguments, const char* stdout_path) const {
  const int out = stdout_path == nullptr ? memfd_create("out", 0) : open(stdout_path, O_WRONLY);
  CommandResult result = run_into(arguments, out);
  if (stdout_path == nullptr) result.out = read_all("/proc/self/fd/" + std::to_string(out));
  close(out);
  return result;
}

CommandResult CommandTest::run_into(const std::vector<std::string>& arguments, int out) const {
  const int err = memfd_create("err", 0);
  std::vector<char*> argv = {const_cast<char*>(SOROT_COMMAND)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  const pid_t child = fork();
  if (child == 0) {
    alarm(kTimeLimitSeconds);
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    if (chdir(folder_.c_str()) == 0) execv(SOROT_COMMAND, argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CommandResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.err = read_all("/proc/self/fd/" + std::to_string(err));
  close(err);
  return result;
}

CommandResult CommandTest::succeed(const std::vector<std::string>& arguments) const {
  CommandResult result = run(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  return result;
}

void CommandTest::refuse(const std::vector<std::string>& arguments, std::string_view part, int exit_code) const {
  const std::vector<std::string> before = files();
  const CommandResult result = run(arguments);
  EXPECT_EQ(result.exit_code, exit_code) << ::testing::PrintToString(arguments) << '\n' << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("sorot: ")) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err << "expected to mention: " << part;
  EXPECT_EQ(files(), before);
}

std::vector<std::string> CommandTest::files() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

void CommandTest::write(const std::string& name, std::string_view bytes) const {
  std::ofstream(path(name), std::ios::binary) << bytes;
}

void CommandTest::write_npy(const std::string& name, DType dtype, const std::vector<std::int64_t>& shape,
                            const std::vector<double>& values) const {
  std::string bytes = tools::format_npy_header(dtype, shape);
  for (const double value : values) append(bytes, dtype, value);
  write(name, bytes);
}

void CommandTest::fill_npy(const std::string& name, DType dtype, const std::vector<std::int64_t>& shape,
                           double value) const {
  std::size_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
  write_npy(name, dtype, shape, std::vector<double>(count, value));
}

CommandTest::Array CommandTest::read(const std::string& name) const {
  const tools::NpyArray file = tools::read_npy(name, path(name));
  Array array{file.header.dtype, {file.header.sizes().begin(), file.header.sizes().end()}, {}};
  const bool wide = array.dtype == DType::f64;
  EXPECT_TRUE(wide || array.dtype == DType::f32) << tools::npy_name(array.dtype);
  EXPECT_FALSE(file.header.fortran_order);
  for (std::size_t i = 0; i < file.data.bytes() / size_of(array.dtype); ++i) {
    array.values.push_back(wide ? reinterpret_cast<const double*>(file.data.data())[i]
                                : static_cast<double>(reinterpret_cast<const float*>(file.data.data())[i]));
  }
  return array;
}

}  // namespace sorot::tests
