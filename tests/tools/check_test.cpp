#include <string>

#include "tests/tools/command_fixture.h"

namespace sorot::tests {
namespace {

using CheckTest = CommandTest;

bool ends_with_line(const std::string& text, const std::string& line) { return text.ends_with("\n" + line + "\n"); }

TEST_F(CheckTest, PassesFewCasesAndOnlyPrintsTheGaps) {
  const CommandResult result = run({"check", "--op", "attention", "--device", "reference", "--fuzz", "8", "--seed=3"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");  // the progress bar is for terminals
  EXPECT_NE(result.out.find("gaps in coverage"), std::string::npos);
  EXPECT_NE(result.out.find("attention_reference on reference: runs"), std::string::npos);
  EXPECT_TRUE(ends_with_line(result.out, "8 passed, 0 failed")) << result.out;
}

TEST_F(CheckTest, BringsOneCaseBack) {
  const CommandResult once = run({"check", "--seed", "3", "--only", "1234", "--kernel", "attention_reference"});
  const CommandResult again = run({"check", "--fuzz", "5", "--only=1234", "--seed=3"});
  EXPECT_EQ(once.exit_code, 0) << once.out << once.err;
  EXPECT_TRUE(once.out.starts_with("case 1234: {\"seed\":")) << once.out;
  EXPECT_TRUE(ends_with_line(once.out, "1 passed, 0 failed"));
  EXPECT_EQ(once.out, again.out);
}

TEST_F(CheckTest, RunsCasesFromAFile) {
  write("cases.json", R"([{"dtype": "bf16", "Sq": 3, "Skv": 4, "D": 8, "Dv": 8, "causal": true}, {"lse": true}])");
  const CommandResult result = run({"check", "--cases", "cases.json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(ends_with_line(result.out, "2 passed, 0 failed")) << result.out;
  const CommandResult one = run({"check", "--cases", "cases.json", "--only", "1"});
  EXPECT_TRUE(ends_with_line(one.out, "1 passed, 0 failed")) << one.out;
}

TEST_F(CheckTest, RefusesBadOptionsAndFiles) {
  refuse({"check", "--fuzz", "many"}, "--fuzz is 'many', expected a whole number");
  refuse({"check", "--fuzz", "-1"}, "--fuzz is -1, expected 0..");
  refuse({"check", "--seed", "x"}, "--seed is 'x'");
  refuse({"check", "--only", "-3"}, "--only is -3");
  refuse({"check", "--fuzz", "0"}, "--fuzz is 0, expected 1 or more, or --cases");
  refuse({"check", "--op", "convolution"}, "--op is 'convolution', expected attention");
  refuse({"check", "--device", "abacus"}, "abacus");
  refuse({"check", "--nonsense"}, "--nonsense");
  refuse({"check", "--cases", "missing.json"}, "--cases 'missing.json' cannot be read");
  refuse({"check", "--fuzz", "9000000000000000000"}, "--fuzz is 9000000000000000000, expected 0..");
  refuse({"check", "--cases", "."}, "--cases '.' cannot be read, expected a JSON file");
  refuse({"check", "--cases", "/dev/zero"}, "--cases '/dev/zero' cannot be read");
  write("cases.json", "[{}, {\"softcap\": -1}]");
  refuse({"check", "--cases", "cases.json"}, "case 1: softcap is -1, expected");
  write("cases.json", "[{\"dtype\": \"none\"}]");
  refuse({"check", "--cases", "cases.json"}, "case 0: dtype is none, expected f64");
  const auto bad_case = [&](const char* json, const std::string& why) {
    write("cases.json", json);
    refuse({"check", "--cases", "cases.json"}, "--cases 'cases.json': " + why + "\n");
  };
  bad_case("[{\"Sq\": -3}]", "case 0: Sq is -3, expected 0..1048576");
  bad_case("[{\"D\": 0}]", "case 0: D is 0, expected 1..1048576");
  bad_case("[{\"H\": 3, \"Hkv\": 2}]", "case 0: H is 3, expected a multiple of Hkv, which is 2");
  bad_case("[{}, {\"B\": 2, \"kv_lengths\": {\"values\": [1]}}]",
           "case 1: kv_lengths has 1 values, expected 2, as B says");
  bad_case("[{\"out\": {\"twist\": \"zero\"}}]", "case 0: out.twist is zero, but an output cannot have a zero stride");
  bad_case("[{\"sinks\": {\"values\": 3}}]", "case 0.sinks.values is 3, expected a list");
  bad_case("[{\"align\": \"offsets\"}]", "case 0: align is \"offsets\", but there are no offsets");
  bad_case("{}", "expected a list of cases: [{...}, ...]");
  bad_case("[{]",
           "no JSON: parse error at line 1, column 3: syntax error while parsing object key - unexpected ']'; "
           "expected string literal");
  write("cases.json", "[]");
  refuse({"check", "--cases", "cases.json"}, "--cases 'cases.json' has no cases, expected one or more, or --fuzz");
  write("cases.json", R"([{"H": 0, "Hkv": 1048576, "Skv": 1048576}])");
  refuse({"check", "--cases", "cases.json"}, "elements in a tensor, expected at most");
  write("cases.json", "[{\"dtype\": \"f8\"}]");
  refuse({"check", "--cases", "cases.json"}, "case 0.dtype is \"f8\", expected one of");
  write("cases.json", "[{}]");
  refuse({"check", "--cases", "cases.json", "--only", "1"}, "--only is 1, expected below 1");
}

TEST_F(CheckTest, HelpTellsAllThereIs) {
  const CommandResult result = run({"check", "--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* part : {"--op NAME", "--device NAME", "--kernel NAME", "--fuzz N", "--seed N", "--cases FILE",
                           "--only INDEX", "--schedule ORDER", "--profile SM", "Exit codes: 0 success, 1 mismatch"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << " in\n" << result.out;
  }
  EXPECT_EQ(result.out.find("TEXT"), std::string::npos) << result.out;
}

TEST_F(CheckTest, SaysWhatADeviceLacks) {
  refuse({"check", "--device", "reference", "--kernel", "attention_sm80"},
         "device reference has no attention kernel 'attention_sm80', only attention_reference", 3);
}

}  // namespace
}  // namespace sorot::tests
