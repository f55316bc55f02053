#include <gtest/gtest.h>

#include "tests/tools/command_fixture.h"
#include "tests/tools/npy_bytes.h"

/// Files and values that `sorot attend` refuses: exit code 2, one line that names what is wrong, nothing written.
namespace sorot::tests {
namespace {

class AttendRefusal : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    fill_npy("x.npy", DType::f32, {2, 4, 3, 2}, 0.5);  // B 2, H 4, S 3, D 2
  }

  /// An attend that asks for all outputs, with these options behind and one of q, k, v replaced.
  std::vector<std::string> attend(std::vector<std::string> options, const std::string& q = "x.npy",
                                  const std::string& k = "x.npy", const std::string& v = "x.npy") const {
    options.insert(options.begin(),
                   {"attend", "--q", q, "--k", k, "--v", v, "--out", "o.npy", "--weights", "w.npy", "--lse", "l.npy"});
    return options;
  }
};

TEST_F(AttendRefusal, FilesThatAreNone) {
  refuse(attend({}, "no.npy"), "--q no.npy cannot be read: No such file or directory");
  refuse(attend({}, "x.npy", "."), "--k . is a directory");
  refuse(attend({}, "x.npy", "x.npy", "/dev/zero"), "--v /dev/zero is not a regular file");
  refuse(attend({}, "x.npy/y.npy"), "Not a directory");
  refuse(attend({"--mask", "no.npy"}), "--mask no.npy cannot be read");
  refuse(attend({"--kv-lengths", "1,2e0"}), "--kv-lengths 1,2e0 cannot be read");
  write("line\nbreak.npy", "");
  refuse(attend({"--mask", "line\nbreak.npy"}), "--mask line?break.npy");
}

TEST_F(AttendRefusal, MalformedFilesForEveryOption) {
  write("bad.npy", npy_bytes(kTwoFloats, 7));
  write("bad_i4.npy", npy_bytes(replaced(kTwoFloats, "<f4", "<i4"), 7));
  write("bad_b1.npy", npy_bytes(replaced(kTwoFloats, "<f4", "|b1"), 1));
  const std::string truncated = " is truncated: it has 7 bytes of elements";
  for (const char* option : {"--bias", "--alibi", "--sinks"}) {
    refuse(attend({option, "bad.npy"}), std::string(option) + " bad.npy" + truncated);
  }
  for (const char* option : {"--kv-lengths", "--align-offsets"}) {
    refuse(attend({option, "bad_i4.npy"}), std::string(option) + " bad_i4.npy" + truncated);
  }
  refuse(attend({"--mask", "bad_b1.npy"}), "--mask bad_b1.npy is truncated: it has 1 bytes of elements");
  refuse(attend({}, "bad.npy"), "--q bad.npy is truncated");
  refuse(attend({}, "x.npy", "bad.npy"), "--k bad.npy is truncated");
  refuse(attend({}, "x.npy", "x.npy", "bad.npy"), "--v bad.npy is truncated");
}

TEST_F(AttendRefusal, DTypesPerOption) {
  fill_npy("i4.npy", DType::i32, {2});
  fill_npy("f4.npy", DType::f32, {2});
  fill_npy("b1.npy", DType::boolean, {2});
  fill_npy("q_i8.npy", DType::i64, {2, 4, 3, 2});
  refuse(attend({}, "q_i8.npy"), "--q q_i8.npy has dtype '<i8', expected <f2, <f4 or <f8");
  refuse(attend({"--mask", "f4.npy"}), "--mask f4.npy has dtype '<f4', expected |b1");
  for (const char* option : {"--bias", "--alibi", "--sinks"}) {
    refuse(attend({option, "b1.npy"}), std::string(option) + " b1.npy has dtype '|b1', expected <f2, <f4 or <f8");
    refuse(attend({option, "i4.npy"}), "has dtype '<i4'");
  }
  for (const char* option : {"--kv-lengths", "--align-offsets"}) {
    refuse(attend({option, "f4.npy"}), std::string(option) + " f4.npy has dtype '<f4', expected <i4 or <i8");
  }
  write("u1.npy", npy_bytes(replaced(kTwoFloats, "<f4", "|u1"), 2));
  refuse(attend({"--mask", "u1.npy"}), "--mask u1.npy has dtype '|u1', expected |b1\n");
  refuse(attend({}, "u1.npy"), "--q u1.npy has dtype '|u1', expected <f2, <f4 or <f8\n");
  refuse(attend({"--kv-lengths", "u1.npy"}), "--kv-lengths u1.npy has dtype '|u1', expected <i4 or <i8\n");
}

TEST_F(AttendRefusal, Ranks) {
  fill_npy("rank3.npy", DType::f32, {4, 3, 2});
  fill_npy("rank1.npy", DType::f32, {3});
  refuse(attend({}, "x.npy", "rank3.npy"), "--k rank3.npy has shape (4, 3, 2), expected 4 dimensions as in --q x.npy");
  refuse(attend({}, "x.npy", "x.npy", "rank3.npy"), "--v rank3.npy has shape (4, 3, 2), expected 4 dimensions");
  refuse(attend({}, "rank1.npy", "rank1.npy", "rank1.npy"), "--q rank1.npy has shape (3,), expected [S,D], [H,S,D]");
  write("rank5.npy", npy_bytes(replaced(kTwoFloats, "2,", "1, 1, 1, 1, 2"), 8));
  refuse(attend({"--bias", "rank5.npy"}), "--bias rank5.npy has a shape of more than 4 dimensions");
}

TEST_F(AttendRefusal, Shapes) {
  fill_npy("wide.npy", DType::f32, {2, 4, 3, 5});
  refuse(attend({}, "x.npy", "wide.npy"), "k has shape [2, 4, 3, 5], expected [B, Hkv, Skv, D] = [2, 4, 3, 2]");
  refuse(attend({}, "x.npy", "wide.npy"), "(k is --k wide.npy)");
  fill_npy("long.npy", DType::f32, {2, 4, 9, 2});
  refuse(attend({}, "x.npy", "x.npy", "long.npy"), "v has shape [2, 4, 9, 2]");
  fill_npy("heads.npy", DType::f32, {2, 3, 3, 2});
  refuse(attend({}, "x.npy", "heads.npy", "heads.npy"), "4 query heads are not a multiple of 3 kv heads");
  fill_npy("batch.npy", DType::f32, {1, 4, 3, 2});
  refuse(attend({}, "x.npy", "batch.npy", "batch.npy"), "k has shape [1, 4, 3, 2]");
  fill_npy("no_dim.npy", DType::f32, {2, 4, 3, 0});
  refuse(attend({}, "no_dim.npy", "no_dim.npy"), "expected D >= 1");
  refuse(attend({}, "x.npy", "x.npy", "no_dim.npy"), "expected Dv >= 1");
  fill_npy("no_heads.npy", DType::f32, {2, 0, 3, 2});
  refuse(attend({}, "x.npy", "no_heads.npy", "no_heads.npy"), "4 query heads have 0 kv heads");

  fill_npy("mask.npy", DType::boolean, {2, 3});
  refuse(attend({"--mask", "mask.npy"}), "mask has shape [2, 3], expected one that broadcasts to [B, H, Sq, Skv]");
  fill_npy("bias.npy", DType::f32, {3, 3, 3});
  refuse(attend({"--bias", "bias.npy"}), "bias has shape [3, 3, 3]");
  fill_npy("one.npy", DType::f32, {1});
  refuse(attend({"--alibi", "one.npy"}),
         "alibi_slopes has shape [1], expected [H] = [4] (alibi_slopes is --alibi one.npy)");
  refuse(attend({"--sinks", "one.npy"}), "sinks has shape [1], expected [H] = [4]");
}

TEST_F(AttendRefusal, LengthsTheLibraryWouldClamp) {
  refuse(attend({"--kv-lengths", "3,4"}), "--kv-lengths 3,4 has 4 for sequence 1, expected 0..3");
  refuse(attend({"--kv-lengths", "-1,3"}), "--kv-lengths -1,3 has -1 for sequence 0, expected 0..3");
  write_npy("n.npy", DType::i64, {2}, {0, 4294967296.0 + 2});
  refuse(attend({"--kv-lengths", "n.npy"}), "--kv-lengths n.npy has 4294967298 for sequence 1, expected 0..3");
}

TEST_F(AttendRefusal, OffsetsThatDoNotFit32Bits) {
  refuse(attend({"--align-offsets", "0,2147483648"}),
         "has 2147483648 for sequence 1, expected -2147483648..2147483647");
  refuse(attend({"--align-offsets", "-2147483649,0"}), "has -2147483649 for sequence 0");
  refuse(attend({"--align-offsets", "0,99999999999999999999"}), "too large or too small");
  write_npy("n.npy", DType::i64, {2}, {-1e18, 0});
  refuse(attend({"--align-offsets", "n.npy"}), "--align-offsets n.npy has -1000000000000000000 for sequence 0");
}

TEST_F(AttendRefusal, ListsAndTheirCounts) {
  refuse(attend({"--kv-lengths", "3"}), "kv_lengths has shape [1], expected [B] = [2] (kv_lengths is --kv-lengths 3)");
  refuse(attend({"--align-offsets", "0,0,0"}), "offsets has shape [3], expected [B] = [2]");
  for (const char* list : {"1,", ",1", "1,,2", ",", "1-2", "-", "+", "1,--2", "1+1,2"}) {
    refuse(attend({"--kv-lengths", list}), "--kv-lengths is '");
  }
  fill_npy("rank2.npy", DType::i32, {1, 2});
  refuse(attend({"--kv-lengths", "rank2.npy"}), "kv_lengths has shape [1, 2]");
}

TEST_F(AttendRefusal, MoreThanTheMachineHas) {
  fill_npy("q.npy", DType::f32, {3, 2});
  fill_npy("k.npy", DType::f32, {0, 2});
  fill_npy("v.npy", DType::f32, {0, std::int64_t{1} << 50});  // a legal file of 128 bytes
  refuse(attend({}, "q.npy", "k.npy", "v.npy"), "needs 13510798882111488 bytes");
  fill_npy("v.npy", DType::f32, {0, std::int64_t{1} << 62});
  refuse(attend({}, "q.npy", "k.npy", "v.npy"), "--out would have shape");
}

}  // namespace
}  // namespace sorot::tests
