#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/attention_case.h"

namespace sorot::bench {
namespace {

nlohmann::json line() {
  return {{"name", "small"}, {"dtype", "f16"}, {"B", 2}, {"H", 4},          {"Hkv", 2},
          {"Sq", 3},         {"Skv", 5},       {"D", 8}, {"reason", "test"}};
}

/// What reading says of a line that is wrong.
std::string refusal(const nlohmann::json& wrong) {
  try {
    read_attention_case(wrong);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(BenchCase, ReadsEveryField) {
  nlohmann::json full = line();
  full["causal"] = true;
  full["align"] = "bottom_right";
  full["devices"] = {"cuda"};
  const AttentionCase c = read_attention_case(full);
  EXPECT_EQ(c.name, "small");
  EXPECT_EQ(c.dtype, DType::f16);
  EXPECT_EQ((std::vector{c.batch, c.heads, c.kv_heads, c.queries, c.keys, c.dim}),
            (std::vector<std::int64_t>{2, 4, 2, 3, 5, 8}));
  EXPECT_TRUE(c.causal);
  EXPECT_EQ(c.align, Align::bottom_right);
  EXPECT_TRUE(is_timed_on(c, "cuda"));
  EXPECT_FALSE(is_timed_on(c, "reference"));
}

TEST(BenchCase, RunsEverywhereUnlessItSaysWhere) {
  const AttentionCase c = read_attention_case(line());
  EXPECT_TRUE(is_timed_on(c, "cuda"));
  EXPECT_TRUE(is_timed_on(c, "reference"));
}

TEST(BenchCase, RefusesWithTheCaseAndWhatWouldBeRight) {
  const auto with = [](const char* field, const nlohmann::json& value) {
    nlohmann::json changed = line();
    changed[field] = value;
    return refusal(changed);
  };
  EXPECT_EQ(with("Dv", 8),
            "case small: unknown field 'Dv', expected one of name, dtype, B, H, Hkv, Sq, Skv, D, causal, align, "
            "devices, reason");
  EXPECT_EQ(with("devices", {"tpu"}), "case small: unknown device 'tpu', expected one of reference, cuda");
  EXPECT_EQ(with("devices", nlohmann::json::array()), "case small has an empty list of devices");
  EXPECT_EQ(with("dtype", "i8"), "dtype is 'i8', expected f64, f32, f16 or bf16");
  EXPECT_EQ(with("align", "left"), "align is 'left', expected top_left or bottom_right");
  EXPECT_EQ(with("Sq", 0), "case small: Sq is 0, expected 1 or more");
  EXPECT_EQ(with("H", 3), "case small: H is 3, expected a multiple of Hkv = 2");
  EXPECT_EQ(with("reason", ""), "case small has no reason");
  nlohmann::json short_of_one = line();
  short_of_one.erase("D");
  EXPECT_NE(refusal(short_of_one).find("'D'"), std::string::npos);
}

TEST(BenchCase, ArithmeticAndBytes) {
  AttentionCase c = read_attention_case(line());
  EXPECT_DOUBLE_EQ(attention_flops(c), 2.0 * 4 * 3 * 5 * 2 * 16);
  EXPECT_DOUBLE_EQ(attention_bytes(c), 2.0 * 2 * 8 * (2 * 4 * 3 + 2 * 2 * 5));
  c.causal = true;
  EXPECT_DOUBLE_EQ(attention_flops(c), 2.0 * 4 * (1 + 2 + 3) * 2 * 16);
  c.align = Align::bottom_right;
  EXPECT_DOUBLE_EQ(attention_flops(c), 2.0 * 4 * (3 + 4 + 5) * 2 * 16);
}

TEST(BenchCase, EveryCaseOfTheFileIsSoundAndNamedOnce) {
  std::ifstream file(std::string(SOROT_BENCH_CASES) + "/attention.json");
  std::set<std::string> names;
  for (const AttentionCase& c : read_attention_cases(nlohmann::json::parse(file))) {
    EXPECT_TRUE(names.insert(c.name).second) << c.name;
  }
  EXPECT_GE(names.size(), 10U);
}

}  // namespace
}  // namespace sorot::bench
