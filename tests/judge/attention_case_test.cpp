#include "tests/support/attention_case.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "tests/support/attention_generator.h"
#include "tests/support/attention_tensors.h"

namespace sorot::support {
namespace {

std::string refusal(const std::string& json) {
  try {
    static_cast<void>(cases_from_json(json));
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(AttentionCase, SurvivesJson) {
  for (std::uint64_t index = 0; index < 200; ++index) {
    const std::string json = to_json(generate_attention_case(9, index));
    const std::vector<AttentionCase> read = cases_from_json("[" + json + "]");
    ASSERT_EQ(read.size(), 1U);
    EXPECT_EQ(to_json(read[0]), json);
  }
}

TEST(AttentionCase, HasDefaultsForEverything) {
  const std::vector<AttentionCase> read = cases_from_json("[{}, {\"H\": 4, \"Hkv\": 2, \"dtype\": \"bf16\"}]");
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(to_json(read[0]), "{}");
  EXPECT_EQ(read[1].heads, 4);
  EXPECT_EQ(read[1].dtype, DType::bf16);
}

TEST(AttentionCase, RefusesWhatItDoesNotUnderstand) {
  EXPECT_NE(refusal("{"), "accepted");
  EXPECT_NE(refusal("{}"), "accepted");
  EXPECT_NE(refusal("[3]"), "accepted");
  EXPECT_EQ(refusal("[{\"Sk\": 3}]"), "case 0: has the unknown field 'Sk'");
  EXPECT_NE(refusal("[{}, {\"dtype\": \"f8\"}]").find("case 1.dtype is \"f8\", expected one of"), std::string::npos);
  EXPECT_NE(refusal("[{\"Sq\": 1.5}]").find("1.5"), std::string::npos);
  EXPECT_NE(refusal("[{\"Sq\": -1}]").find("-1"), std::string::npos);
  EXPECT_NE(refusal("[{\"D\": 0}]"), "accepted");
  EXPECT_NE(refusal("[{\"H\": 3, \"Hkv\": 2}]"), "accepted");
  EXPECT_NE(refusal("[{\"B\": 2, \"kv_lengths\": {\"values\": [1]}}]"), "accepted");
  EXPECT_NE(refusal("[{\"align\": \"offsets\"}]"), "accepted");
  EXPECT_NE(refusal("[{\"Sq\": 1000000, \"Skv\": 1000000}]"), "accepted");
  EXPECT_NE(refusal("[{\"invalid\": 100000}]"), "accepted");
  EXPECT_NE(refusal("[{\"mask\": {\"present\": true, \"broadcast\": {\"rank\": 5}}}]"), "accepted");
  EXPECT_NE(refusal("[{\"out\": {\"twist\": \"zero\"}}]"), "accepted");
}

TEST(AttentionGenerator, DependsOnSeedAndIndexAlone) {
  const AttentionCase once = generate_attention_case(3, 77);
  for (std::uint64_t index = 0; index < 10; ++index) static_cast<void>(generate_attention_case(4, index));
  const AttentionCase again = generate_attention_case(3, 77);
  EXPECT_EQ(to_json(once), to_json(again));
  EXPECT_EQ(AttentionTensors(once).dense().q, AttentionTensors(again).dense().q);
  EXPECT_NE(to_json(once), to_json(generate_attention_case(4, 77)));
  EXPECT_NE(to_json(once), to_json(generate_attention_case(3, 78)));
}

}  // namespace
}  // namespace sorot::support
