#include "tools/sorot/npy.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tests/tools/allocated_bytes.h"
#include "tests/tools/npy_bytes.h"

namespace sorot::tests {
namespace {

using tools::ExitCode;
using tools::Failure;
using tools::format_npy_header;
using tools::npy_shape;
using tools::npy_view;
using tools::NpyArray;
using tools::NpyHeader;

NpyHeader parse(std::string_view file) {
  return tools::parse_npy("t.npy", std::as_bytes(std::span(file.data(), file.size())), file.size());
}

/// The message of the refusal, or "accepted".
std::string refusal(std::string_view file) {
  try {
    (void)parse(file);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.exit_code, ExitCode::kBadInput);
    EXPECT_TRUE(std::string_view(failure.what()).starts_with("t.npy ")) << failure.what();
    EXPECT_EQ(std::string_view(failure.what()).find('\n'), std::string_view::npos) << failure.what();
    return failure.what();
  }
  return "accepted";
}

void expect_refusal(std::string_view file, std::string_view part) {
  const std::string message = refusal(file);
  EXPECT_NE(message.find(part), std::string::npos) << message << "\nexpected to mention: " << part;
}

TEST(NpyHeader, HasTheBytesOfNumpySave) {
  const std::int64_t shape[] = {2, 3};
  const std::string header = format_npy_header(DType::f32, shape);
  EXPECT_EQ(header.size(), 128U);
  std::string expected("\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 69);
  expected.append(127 - expected.size(), ' ');
  EXPECT_EQ(header, expected + "\n");
}

TEST(NpyHeader, EveryDTypeAndRankSurvivesARoundTrip) {
  const std::vector<std::vector<std::int64_t>> shapes = {{}, {5}, {2, 3}, {4, 1, 2}, {1, 2, 3, 4}, {2, 0, 3}};
  for (const DType dtype : {DType::f16, DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean}) {
    for (const auto& shape : shapes) {
      std::size_t count = 1;
      for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
      const std::string header = format_npy_header(dtype, shape);
      EXPECT_EQ(header.size() % 64, 0U);
      const NpyHeader parsed = parse(header + std::string(count * size_of(dtype), 'x'));
      EXPECT_EQ(parsed.dtype, dtype);
      EXPECT_FALSE(parsed.fortran_order);
      EXPECT_EQ(npy_shape(parsed.sizes()), npy_shape(shape));
      EXPECT_EQ(parsed.data_offset, header.size());
      EXPECT_EQ(parsed.data_bytes, count * size_of(dtype));
    }
  }
}

TEST(NpyHeader, LongestShapeStillFits) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::int64_t shape[] = {most, 0, most, most};
  EXPECT_EQ(npy_shape(parse(format_npy_header(DType::boolean, shape)).sizes()), npy_shape(shape));
}

TEST(NpyHeader, Versions1To3) {
  for (const int major : {1, 2, 3}) EXPECT_EQ(parse(npy_bytes(kTwoFloats, 8, major)).data_bytes, 8U) << major;
}

TEST(NpyHeader, AnyOrderQuotesAndSpaces) {
  const NpyHeader header =
      parse(npy_bytes("  { \"shape\":(\t2 , 3)\n, 'fortran_order' :True,'descr': \"<i8\"} \n ", 2 * 3 * 8));
  EXPECT_EQ(header.dtype, DType::i64);
  EXPECT_TRUE(header.fortran_order);
  EXPECT_EQ(npy_shape(header.sizes()), "(2, 3)");
}

TEST(NpyHeader, FortranOrderIsStrides) {
  const TensorView view = npy_view(parse(npy_bytes("{'descr': '<f2', 'fortran_order': True, 'shape': (2, 3, 5)}", 60)),
                                   nullptr, DType::f16);
  EXPECT_EQ(std::vector(view.strides, view.strides + 3), (std::vector<std::int64_t>{1, 2, 6}));
  const TensorView c = npy_view(parse(npy_bytes("{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3, 5)}", 60)),
                                nullptr, DType::f16);
  EXPECT_EQ(std::vector(c.strides, c.strides + 3), (std::vector<std::int64_t>{15, 5, 1}));
}

TEST(NpyRefusal, EveryPrefixOfAFileAndEveryExtension) {
  const std::string file = npy_bytes(kTwoFloats, 8);
  for (std::size_t size = 0; size < file.size(); ++size) EXPECT_NE(refusal(file.substr(0, size)), "accepted") << size;
  EXPECT_EQ(refusal(file), "accepted");
  expect_refusal(file.substr(0, file.size() - 1),
                 "is truncated: it has 7 bytes of elements, expected 8 for shape (2,)");
  expect_refusal(file.substr(0, 9), "is truncated: it has 9 bytes");
  expect_refusal(file + 'x', "has trailing bytes: it has 9 bytes of elements, expected 8");
}

TEST(NpyRefusal, MagicAndVersion) {
  expect_refusal("", "does not begin with \\x93NUMPY");
  expect_refusal("PK\x03\x04 a zip archive: .npz", "does not begin with \\x93NUMPY");
  expect_refusal(npy_bytes(kTwoFloats, 8, 0), "has format version 0.0, expected 1.0, 2.0 or 3.0");
  expect_refusal(npy_bytes(kTwoFloats, 8, 4), "has format version 4.0");
  expect_refusal(npy_bytes(kTwoFloats, 8, 1, 1), "has format version 1.1");
}

TEST(NpyRefusal, HeaderLength) {
  std::string file = npy_bytes(kTwoFloats, 8);
  file[9] = '\x7F';
  expect_refusal(file, "is truncated: it has 76 bytes, expected a header up to byte 32580");
  file = npy_bytes(kTwoFloats, 8, 2);
  file.replace(8, 4, "\xFF\xFF\xFF\xFF");
  expect_refusal(file, "expected a header up to byte 4294967307");
  file = npy_bytes(kTwoFloats, 8);
  file.replace(8, 2, 2, '\0');
  expect_refusal(file, "expected the header's dictionary");
}

TEST(NpyRefusal, DTypesByName) {
  for (const char* dtype : {">f4", ">i8", "|u1", "|i1", "<u4", "<i2", "<f16", "<c8", "|O", "<U3", "|S1", "<M8[ns]",
                            "f4", "=f4", "<b1", "float32", ""}) {
    expect_refusal(npy_bytes(replaced(kTwoFloats, "<f4", dtype), 8),
                   fmt::format("has dtype '{}', expected <f2, <f4, <f8, <i4, <i8 or |b1", dtype));
  }
  expect_refusal(npy_bytes(replaced(kTwoFloats, "'<f4'", "[('a', '<f4')]"), 8), "structured dtype [('a', '<f4')]");
}

TEST(NpyRefusal, Shapes) {
  const auto with_shape = [](std::string_view shape) { return npy_bytes(replaced(kTwoFloats, "(2,)", shape), 8); };
  expect_refusal(with_shape("(-2,)"), "negative size -2");
  expect_refusal(with_shape("(1, 1, 1, 1, 2)"), "more than 4 dimensions");
  expect_refusal(with_shape("(9223372036854775808,)"), "9223372036854775808 in its shape, more than 64 bits hold");
  expect_refusal(with_shape("(4294967296, 4294967296)"), "(4294967296, 4294967296), too large for any file");
  expect_refusal(with_shape("(4611686018427387904,)"), "(4611686018427387904,), too large for any file");
  expect_refusal(with_shape("(1099511627776,)"), "is truncated: it has 8 bytes of elements, expected 4398046511104");
  expect_refusal(with_shape("(2)"), "has a number as its shape, expected a tuple: (2,)");
  for (const char* shape : {"2", "[2]", "(2.0,)", "(2L,)", "(02,)", "(+2,)", "(,)", "(2,,)", "(2 3)", "(None,)", "(2,",
                            "('2',)", "(0x2,)", "(1e0,)", "(--2,)"}) {
    expect_refusal(with_shape(shape), "in its shape, expected whole numbers in a tuple");
  }
}

TEST(NpyRefusal, Dictionary) {
  expect_refusal(npy_bytes("", 8), "expected the header's dictionary");
  expect_refusal(npy_bytes("{}", 8), "has no descr");
  expect_refusal(npy_bytes("{'descr': '<f4', 'shape': (2,)}", 8), "has no fortran_order");
  expect_refusal(npy_bytes("{'descr': '<f4', 'fortran_order': False}", 8), "has no shape");
  expect_refusal(npy_bytes(replaced(kTwoFloats, ", }", ", 'extra': 1}"), 8), "has 'extra' in its header");
  expect_refusal(npy_bytes(replaced(kTwoFloats, "{", "{'shape': (2,), "), 8), "has shape twice");
  expect_refusal(npy_bytes(replaced(kTwoFloats, "False", "0"), 8), "expected True or False");
  expect_refusal(npy_bytes(replaced(kTwoFloats, "False", "Falsehood"), 8), "expected a ',' or '}'");
  expect_refusal(npy_bytes(replaced(kTwoFloats, "}", ""), 8), "expected a key in quotes");
  expect_refusal(npy_bytes(replaced(kTwoFloats, "}", "} x"), 8), "has 'x' behind its header's dictionary");
  expect_refusal(npy_bytes(replaced(kTwoFloats, "'descr'", "descr"), 8), "expected a key in quotes");
  expect_refusal(npy_bytes(replaced(kTwoFloats, "'<f4',", "'<f4'"), 8), "expected a ',' or '}'");
  expect_refusal(npy_bytes(replaced(kTwoFloats, ": '<f4'", " '<f4'"), 8), "expected a ':'");
}

/// Files in a folder of their own.
class NpyFile : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/sorot_npy_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const char* name) const { return folder_ / name; }
  std::string write(const char* name, std::string_view bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  static std::string refusal_of(const std::string& path) {
    try {
      (void)tools::read_npy("--q " + path, path);
    } catch (const Failure& failure) {
      EXPECT_TRUE(std::string_view(failure.what()).starts_with("--q " + path)) << failure.what();
      return failure.what();
    }
    return "accepted";
  }

  std::filesystem::path folder_;
};

TEST_F(NpyFile, IsReadAsItIs) {
  std::string bytes = npy_bytes(kTwoFloats, 0);
  const float values[] = {1.5F, -0.0F};
  bytes.append(reinterpret_cast<const char*>(values), sizeof values);
  const NpyArray array = tools::read_npy("t", write("t.npy", bytes));
  EXPECT_EQ(array.header.dtype, DType::f32);
  ASSERT_EQ(array.data.bytes(), sizeof values);
  EXPECT_EQ(std::memcmp(array.data.data(), values, sizeof values), 0);
}

TEST_F(NpyFile, MayBeEmptyOfElements) {
  const NpyArray array = tools::read_npy("t", write("t.npy", npy_bytes(replaced(kTwoFloats, "2", "0"), 0)));
  EXPECT_EQ(array.data.bytes(), 0U);
  EXPECT_EQ(array.data.data(), nullptr);
}

TEST_F(NpyFile, ThatIsNoFileIsRefused) {
  EXPECT_NE(refusal_of(path("missing.npy")).find("No such file"), std::string::npos);
  EXPECT_NE(refusal_of(folder_).find("is a directory"), std::string::npos);
  EXPECT_NE(refusal_of("/dev/null").find("not a regular file"), std::string::npos);
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_NE(refusal_of(path("pipe")).find("not a regular file"), std::string::npos) << "and did not wait for a writer";
}

TEST_F(NpyFile, ThatMayNotBeReadIsRefused) {
  const std::string file = write("t.npy", npy_bytes(kTwoFloats, 8));
  ASSERT_EQ(chmod(file.c_str(), 0), 0);
  constexpr uid_t kNobody = 65534;
  const bool root = geteuid() == 0;  // may read everything, so it steps down for a moment
  if (root && seteuid(kNobody) != 0) GTEST_SKIP() << "root cannot become another user here";
  const std::string refusal = refusal_of(file);
  ASSERT_TRUE(!root || seteuid(0) == 0);
  EXPECT_NE(refusal.find("Permission denied"), std::string::npos) << refusal;
}

TEST_F(NpyFile, NeverTakesMoreMemoryThanItsSize) {
  constexpr std::size_t kForMessages = 4096;
  const std::string honest = write("honest.npy", npy_bytes(replaced(kTwoFloats, "2", "25000"), 100'000));
  allocated_bytes = 0;
  (void)tools::read_npy("t", honest);
  EXPECT_LT(allocated_bytes, 100'000 + kForMessages);

  for (const char* shape : {"(1099511627776,)", "(2305843009213693951,)", "(1048576, 1048576, 1048576)"}) {
    const std::string claims = write("claims.npy", npy_bytes(replaced(kTwoFloats, "(2,)", shape), 8));
    allocated_bytes = 0;
    EXPECT_NE(refusal_of(claims), "accepted");
    EXPECT_LT(allocated_bytes, kForMessages) << shape;
  }
  std::string bytes = npy_bytes(kTwoFloats, 8, 2);
  bytes.replace(8, 4, "\xFF\xFF\xFF\x7F");
  const std::string long_header = write("long.npy", bytes);
  allocated_bytes = 0;
  EXPECT_NE(refusal_of(long_header), "accepted");
  EXPECT_LT(allocated_bytes, kForMessages);
}

}  // namespace
}  // namespace sorot::tests
