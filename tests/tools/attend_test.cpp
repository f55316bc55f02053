#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/tools/command_fixture.h"
#include "tests/tools/npy_bytes.h"
#include "tools/sorot/npy.h"

/// Every option of `sorot attend` on a problem whose weights are plain to see: three keys and queries, q = 0, so that
/// all scores are equal until an option makes them differ.
namespace sorot::tests {
namespace {

using Numbers = std::vector<double>;
using Sizes = std::vector<std::int64_t>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kThird = 1.0 / 3;

class Attend : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    fill_npy("zero.npy", DType::f32, {3, 2});
    write_npy("k.npy", DType::f32, {3, 1}, {1, 2, 3});
    write_npy("v.npy", DType::f32, {3, 1}, {1, 10, 100});
  }

  void expect_near(const std::string& file, const Numbers& expected, double tolerance = 1e-6) const {
    const Array array = read(file);
    ASSERT_EQ(array.values.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (std::isinf(expected[i])) {
        EXPECT_EQ(array.values[i], expected[i]) << file << " element " << i;
      } else {
        EXPECT_NEAR(array.values[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i])))
            << file << " element " << i;
      }
    }
  }

  /// Weights of the plain problem under these options.
  void expect_weights(std::vector<std::string> options, const Numbers& expected) const {
    options.insert(options.begin(),
                   {"attend", "--q", "zero.npy", "--k", "zero.npy", "--v", "zero.npy", "--weights", "w.npy"});
    succeed(options);
    expect_near("w.npy", expected);
  }
};

TEST_F(Attend, PlainAttentionAndItsThreeOutputs) {
  write_npy("q.npy", DType::f32, {2, 1}, {0, std::log(2.0)});
  succeed({"attend", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--out", "o.npy", "--weights", "w.npy", "--lse",
           "l.npy"});
  expect_near("w.npy", {kThird, kThird, kThird, 2.0 / 14, 4.0 / 14, 8.0 / 14});
  expect_near("o.npy", {37, (2 * 1 + 4 * 10 + 8 * 100) / 14.0});
  expect_near("l.npy", {std::log(3.0), std::log(14.0)});
  EXPECT_EQ(read("o.npy").shape, (Sizes{2, 1}));
  EXPECT_EQ(read("w.npy").shape, (Sizes{2, 3}));
  EXPECT_EQ(read("l.npy").shape, (Sizes{2}));
}

TEST_F(Attend, Causal) { expect_weights({"--causal"}, {1, 0, 0, .5, .5, 0, kThird, kThird, kThird}); }

TEST_F(Attend, Window) {
  expect_weights({"--window", "0,0"}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  expect_weights({"--window", "-1,0"}, {1, 0, 0, .5, .5, 0, kThird, kThird, kThird});
  expect_weights({"--window", "1,-1"}, {kThird, kThird, kThird, kThird, kThird, kThird, 0, .5, .5});
  expect_weights({"--window=2147483647,2147483647"}, Numbers(9, kThird));
}

TEST_F(Attend, Mask) {
  write_npy("m.npy", DType::boolean, {3, 3}, {1, 0, 0, 0, 0, 0, 255, 2, 0});  // any byte but 0 attends
  expect_weights({"--mask", "m.npy"}, {1, 0, 0, 0, 0, 0, .5, .5, 0});
  write_npy("m.npy", DType::boolean, {1, 1, 1, 3}, {0, 1, 0});
  expect_weights({"--mask", "m.npy"}, {0, 1, 0, 0, 1, 0, 0, 1, 0});
  write_npy("m.npy", DType::boolean, {}, {0});
  expect_weights({"--mask", "m.npy"}, Numbers(9, 0));
}

TEST_F(Attend, Bias) {
  for (const DType dtype : {DType::f16, DType::f32, DType::f64}) {
    write_npy("b.npy", dtype, {3}, {0, 1, -kInfinity});
    const double e = std::exp(1.0);
    const double a = 1 / (1 + e);
    expect_weights({"--bias", "b.npy"}, {a, 1 - a, 0, a, 1 - a, 0, a, 1 - a, 0});
  }
}

TEST_F(Attend, AlibiAndSinks) {
  write_npy("a.npy", DType::f64, {1}, {std::log(2.0)});
  expect_weights({"--alibi", "a.npy"}, {4. / 7, 2. / 7, 1. / 7, .25, .5, .25, 1. / 7, 2. / 7, 4. / 7});
  write_npy("s.npy", DType::f16, {1}, {0});
  expect_weights({"--sinks", "s.npy"}, Numbers(9, .25));
}

TEST_F(Attend, LengthsAsListOrFile) {
  const Numbers expected = {.5, .5, 0, .5, .5, 0, .5, .5, 0};
  expect_weights({"--kv-lengths", "2"}, expected);
  write_npy("n.npy", DType::i32, {1}, {2});
  expect_weights({"--kv-lengths", "n.npy"}, expected);
  write_npy("n.npy", DType::i64, {1}, {2});
  expect_weights({"--kv-lengths", "n.npy"}, expected);
  expect_weights({"--kv-lengths", "0"}, Numbers(9, 0));
  expect_weights({"--kv-lengths", "3"}, Numbers(9, kThird));
}

TEST_F(Attend, Alignment) {
  const Numbers top = {1, 0, 0, .5, .5, 0, .5, .5, 0};
  const Numbers one_up = {0, 0, 0, 1, 0, 0, .5, .5, 0};
  expect_weights({"--causal", "--kv-lengths", "2"}, top);
  expect_weights({"--causal", "--kv-lengths", "2", "--align", "top-left"}, top);
  expect_weights({"--causal", "--kv-lengths", "2", "--align=bottom-right"}, one_up);
  expect_weights({"--causal", "--kv-lengths", "2", "--align-offsets", "-1"}, one_up);
  write_npy("o.npy", DType::i64, {1}, {-1});
  expect_weights({"--causal", "--kv-lengths", "2", "--align-offsets", "o.npy"}, one_up);
  expect_weights({"--causal", "--align-offsets", "2147483647"}, Numbers(9, kThird));
  expect_weights({"--causal", "--align-offsets", "-2147483648"}, Numbers(9, 0));
}

TEST_F(Attend, ListsHaveAnEntryPerSequence) {
  fill_npy("b.npy", DType::f32, {2, 1, 1, 2});
  succeed({"attend", "--q", "b.npy", "--k", "b.npy", "--v", "b.npy", "--kv-lengths", "0,1", "--align-offsets", "-3,3",
           "--lse", "l.npy"});
  expect_near("l.npy", {-kInfinity, 0});
}

TEST_F(Attend, ScaleAndSoftcap) {
  write_npy("q.npy", DType::f32, {1, 4}, {1, 0, 0, 0});
  write_npy("k4.npy", DType::f32, {2, 4}, {2, 0, 0, 0, -2, 0, 0, 0});
  const auto lse = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"attend", "--q=q.npy", "--k=k4.npy", "--v=k4.npy", "--lse=l.npy"});
    succeed(options);
    return read("l.npy").values.at(0);
  };
  const auto expected = [](double s) { return std::log(std::exp(s) + std::exp(-s)); };
  EXPECT_NEAR(lse({}), expected(1), 1e-6) << "1/sqrt(4)";
  EXPECT_NEAR(lse({"--scale=1"}), expected(2), 1e-6);
  EXPECT_NEAR(lse({"--scale", "-0.25"}), expected(0.5), 1e-6);
  EXPECT_NEAR(lse({"--scale", "0"}), std::log(2.0), 1e-6);
  EXPECT_NEAR(lse({"--scale", "1", "--softcap", "1"}), expected(std::tanh(2.0)), 1e-6);
  EXPECT_NEAR(lse({"--scale", "1", "--softcap", "0"}), expected(2), 1e-6);
}

TEST_F(Attend, RanksOf2To4GiveOutputsOfTheirRank) {
  for (const Sizes& lead : {Sizes{}, Sizes{4}, Sizes{3, 4}}) {
    const auto with = [&](std::int64_t s, std::int64_t d) {
      Sizes shape = lead;
      shape.insert(shape.end(), {s, d});
      return shape;
    };
    fill_npy("q.npy", DType::f32, with(2, 5), 1);
    Sizes keys = with(3, 5);
    if (keys.size() > 2) keys[keys.size() - 3] = 2;  // grouped: 4 query heads read 2 kv heads
    fill_npy("kk.npy", DType::f32, keys, 1);
    keys.back() = 7;
    fill_npy("vv.npy", DType::f32, keys, 1);
    succeed({"attend", "--q", "q.npy", "--k", "kk.npy", "--v", "vv.npy", "--out", "o.npy", "--weights", "w.npy",
             "--lse", "l.npy"});
    EXPECT_EQ(read("o.npy").shape, with(2, 7));
    EXPECT_EQ(read("w.npy").shape, with(2, 3));
    Sizes rows = with(2, 0);
    rows.pop_back();
    EXPECT_EQ(read("l.npy").shape, rows);
  }
}

TEST_F(Attend, FileTypesAreRoundedOnceToTheDType) {
  // A hair above the middle of two fp16 numbers. By way of float it would become the middle, and fall to 1.
  const double above = 1 + 0x1p-11 + 0x1p-40;
  write_npy("k1.npy", DType::f64, {1, 1}, {0});
  write_npy("v1.npy", DType::f64, {1, 4}, {above, 1 + 0x1p-8, 1e6, 0x1p-24});
  const auto out = [&](const char* dtype) {
    succeed({"attend", "--q", "k1.npy", "--k", "k1.npy", "--v", "v1.npy", "--dtype", dtype, "--out", "o.npy"});
    return read("o.npy").values;
  };
  EXPECT_EQ(out("fp16"), (Numbers{1 + 0x1p-10, 1 + 0x1p-8, kInfinity, 0x1p-24}));
  EXPECT_EQ(out("bf16"), (Numbers{1, 1, 999424, 0x1p-24}));
  EXPECT_EQ(out("fp32"), (Numbers{1 + 0x1p-11, 1 + 0x1p-8, 1e6, 0x1p-24}));
  EXPECT_EQ(read("o.npy").dtype, DType::f32);
  EXPECT_EQ(out("fp64"), (Numbers{above, 1 + 0x1p-8, 1e6, 0x1p-24}));
  EXPECT_EQ(read("o.npy").dtype, DType::f64);
}

TEST_F(Attend, Fp64WidensEveryOutput) {
  succeed({"attend", "--q", "zero.npy", "--k", "zero.npy", "--v", "zero.npy", "--dtype=fp64", "--out", "o.npy",
           "--weights", "w.npy", "--lse", "l.npy"});
  for (const char* file : {"o.npy", "w.npy", "l.npy"}) EXPECT_EQ(read(file).dtype, DType::f64) << file;
  EXPECT_EQ(read("w.npy").values, Numbers(9, kThird));
  expect_near("l.npy", Numbers(3, std::log(3.0)), 1e-15);
}

TEST_F(Attend, LowPrecisionStillWritesFloat32) {
  for (const char* dtype : {"fp16", "bf16"}) {
    succeed({"attend", "--q", "zero.npy", "--k", "zero.npy", "--v", "zero.npy", "--dtype", dtype, "--out", "o.npy",
             "--weights", "w.npy", "--lse", "l.npy"});
    for (const char* file : {"o.npy", "w.npy", "l.npy"}) EXPECT_EQ(read(file).dtype, DType::f32) << file;
    EXPECT_EQ(read("w.npy").values, Numbers(9, static_cast<double>(1.F / 3))) << "not rounded to " << dtype;
  }
}

TEST_F(Attend, MixedFileTypesAndFortranOrder) {
  write_npy("q.npy", DType::f16, {1, 2}, {1, 0});
  std::string k = npy_bytes("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }", 0);
  const float columns[] = {1, 2, 3, 100, 200, 300};  // keys (1, 100), (2, 200), (3, 300)
  k.append(reinterpret_cast<const char*>(columns), sizeof columns);
  write("k.npy", k);
  write_npy("v.npy", DType::f64, {3, 1}, {0, 0, 1});
  succeed({"attend", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--scale", "1", "--lse", "l.npy"});
  expect_near("l.npy", {std::log(std::exp(1) + std::exp(2) + std::exp(3))});
}

TEST_F(Attend, EmptyProblems) {
  const auto run_shapes = [&](const Sizes& q, const Sizes& k, const Sizes& v) {
    fill_npy("q.npy", DType::f32, q, 1);
    fill_npy("kk.npy", DType::f32, k, 1);
    fill_npy("vv.npy", DType::f32, v, 1);
    succeed({"attend", "--q", "q.npy", "--k", "kk.npy", "--v", "vv.npy", "--out", "o.npy", "--weights", "w.npy",
             "--lse", "l.npy"});
  };
  run_shapes({2, 5}, {0, 5}, {0, 3});  // no keys
  EXPECT_EQ(read("o.npy").values, Numbers(6, 0));
  EXPECT_EQ(read("l.npy").values, Numbers(2, -kInfinity));
  EXPECT_EQ(read("w.npy").shape, (Sizes{2, 0}));
  run_shapes({0, 5}, {4, 5}, {4, 3});  // no queries
  EXPECT_EQ(read("o.npy").shape, (Sizes{0, 3}));
  run_shapes({0, 4, 5}, {0, 4, 5}, {0, 4, 3});  // no heads
  EXPECT_EQ(read("w.npy").shape, (Sizes{0, 4, 4}));
  run_shapes({0, 2, 4, 5}, {0, 1, 4, 5}, {0, 1, 4, 3});  // no sequences
  EXPECT_EQ(read("l.npy").shape, (Sizes{0, 2, 4}));
}

TEST_F(Attend, ReportsOnStandardErrorWhatRan) {
  const std::vector<std::string> base = {"attend", "--q", "zero.npy", "--k", "zero.npy", "--v", "zero.npy"};
  CommandResult result = succeed(base);
  EXPECT_EQ(result.out, "");
  for (const char* part : {"reference", "attention_reference<f32>", " ms\n"}) {
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  }
  std::vector<std::string> explained = base;
  explained.insert(explained.end(), {"--explain", "--device", "reference", "--kernel", "attention_reference"});
  result = succeed(explained);
  EXPECT_EQ(result.out.find("attention_reference<f32> on reference"), 0U) << result.out;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1);
}

TEST_F(Attend, ReportsAsJson) {
  const CommandResult result = succeed({"attend", "--q", "zero.npy", "--k", "zero.npy", "--v", "zero.npy", "--dtype",
                                        "bf16", "--lse", "l.npy", "--json", "--explain"});
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_EQ(report["device"], "reference");
  EXPECT_EQ(report["kernel"], "attention_reference");
  EXPECT_EQ(report["variant"], "bf16");
  EXPECT_EQ(report["dtype"], "bf16");
  EXPECT_EQ(report["shapes"]["q"], nlohmann::json({3, 2}));
  EXPECT_EQ(report["shapes"]["lse"], nlohmann::json({3}));
  EXPECT_EQ(report["outputs"], nlohmann::json({{"lse", "l.npy"}}));
  EXPECT_GE(report["milliseconds"], 0.0);
  EXPECT_TRUE(report["workspace_bytes"].is_number_unsigned());
  EXPECT_NE(report["explanation"], "");
}

}  // namespace
}  // namespace sorot::tests
