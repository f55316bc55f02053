#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "sorot/sorot.h"
#include "tests/tools/command_fixture.h"

/// The command as a whole: subcommands, how options are written, help, info, exit codes.
namespace sorot::tests {
namespace {

using Command = AttendCommandTest;

TEST_F(Command, NeedsASubcommandItKnows) {
  refuse({}, "expected a command: info, attend or check");
  refuse({"attention"}, "unknown command 'attention', expected info, attend or check");
  refuse({"--q", "x.npy"}, "unknown command '--q'");
}

TEST_F(Command, HelpAndVersion) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--help"}, {"-h"}, {"help"}, {"attend", "--help"}, {"attend", "--q", "x", "-h"}}) {
    const CommandResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.err, "");
    EXPECT_NE(result.out.find("Usage: sorot"), std::string::npos) << result.out;
  }
  EXPECT_EQ(run({"--version"}).out, std::string("sorot ") + build_info().version + "\n");
  refuse({"--version", "x"}, "--version takes nothing else, but 'x' follows");
  refuse({"--help", "attend"}, "--help takes nothing else, but 'attend' follows");
}

TEST_F(Command, HelpNamesEveryOption) {
  const std::string help = run({"attend", "--help"}).out;
  for (const char* option :
       {"--q",          "--k",        "--v",       "--mask",  "--bias",          "--alibi", "--sinks",
        "--kv-lengths", "--causal",   "--window",  "--align", "--align-offsets", "--scale", "--softcap",
        "--dtype",      "--device",   "--kernel",  "--out",   "--weights",       "--lse",   "--explain",
        "--json",       "--schedule", "--profile", "--seed",  "--race"}) {
    EXPECT_NE(help.find(std::string("  ") + option + " "), std::string::npos) << option;
  }
}

TEST_F(Command, InfoForPeople) {
  const CommandResult result = run({"info"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  for (const char* part : {build_info().version, build_info().compiler, "auto takes ", "attention_reference", "bf16"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << result.out;
  }
}

TEST_F(Command, InfoForPrograms) {
  const auto info = nlohmann::json::parse(run({"info", "--json"}).out);
  EXPECT_EQ(info["version"], build_info().version);
  EXPECT_EQ(info["compilers"]["host"], build_info().compiler);
  ASSERT_EQ(info["devices"].size(), build_info().device_count);
  EXPECT_EQ(info["devices"][0]["name"], "reference");
  EXPECT_EQ(info["devices"][0]["kernels"].size(), build_info().devices[0]->kernel_count);
  EXPECT_NE(info["auto"]["device"], nullptr);
  EXPECT_NE(info["auto"]["reason"], "");
}

TEST_F(Command, InfoTakesNothingElse) {
  refuse({"info", "--jason"}, "'--jason' is no option of sorot info");
  refuse({"info", "x"}, "'x' is no option");
}

TEST_F(Command, OptionsAreWrittenEitherWay) {
  succeed(attend({"--scale", "-0.5", "--window", "-1,0"}));
  succeed(attend({"--scale=-0.5", "--window=-1,0", "--align-offsets=-1", "--out=o.npy"}));
  EXPECT_EQ(files(), (std::vector<std::string>{"o.npy", "x.npy"}));
  succeed(attend({"--scale=+0.5", "--softcap", "1e3", "--causal"}));
}

TEST_F(Command, ValuesAreTakenAsTheyAre) {
  const std::vector<std::string> names = {"-a.npy", "a=b.npy", "[1,2].npy",    "'q'.npy", "\"q\".npy", "a b",   "[x]",
                                          "{}",     "{0}%s%n", "\xC3\xA4.npy", "a;b",     "--x.npy",   "@file", "\xFF"};
  for (const std::string& name : names) {
    fill_npy(name, DType::f32, {3, 2});
    succeed({"attend", "--q", name, "--k=" + name, "--v", name, "--out", name, "--json"});
    EXPECT_EQ(read(name).shape, (std::vector<std::int64_t>{3, 2})) << name;
  }
}

TEST_F(Command, MalformedOptionsAreRefused) {
  refuse(attend({"--colour", "red"}), "'--colour' is no option of sorot attend");
  refuse(attend({"--caus"}), "'--caus' is no option");
  refuse(attend({"--"}), "'--' is no option");
  refuse(attend({"-q", "x.npy"}), "'-q' is no option");
  refuse(attend({"x.npy"}), "'x.npy' is no option");
  refuse(attend({"--scale"}), "--scale needs a value");
  refuse(attend({"--scale", ""}), "--scale needs a value");
  refuse(attend({"--scale="}), "--scale needs a value");
  refuse(attend({"--scale", "--causal"}), "--scale needs a value, but the option --causal follows");
  refuse(attend({"--out", "--help"}), "--out needs a value, but the option --help follows");
  refuse(attend({"--scale", "-h"}), "--scale needs a value, but the option -h follows");
  refuse(attend({"--scale=-h"}), "--scale is '-h', expected a number");
  refuse(attend({"--causal=no"}), "--causal takes no value, but has 'no'");
  refuse(attend({"--causal="}), "--causal takes no value");
  refuse(attend({"--causal", "--causal"}), "--causal is given twice");
  refuse(attend({"--scale=1", "--scale", "1"}), "--scale is given twice");
  refuse(attend({"--q", "x.npy"}), "--q is given twice");
}

TEST_F(Command, RequiredOptions) {
  refuse({"attend"}, "--q is required");
  refuse({"attend", "--q", "x.npy", "--v", "x.npy"}, "--k is required");
  refuse({"attend", "--q", "x.npy", "--k", "x.npy"}, "--v is required");
}

TEST_F(Command, NumbersAreReadWhole) {
  for (const char* text : {"0.5x", "x", "1,2", " 1", "1 ", "0x1", "1e", "--1", "+-1", "+"}) {
    refuse(attend({"--scale", text}), std::string("--scale is '") + text + "', expected a number");
  }
  refuse(attend({"--scale", "1e999"}), "'1e999', too large or too small");
  for (const char* text : {"nan", "inf", "-inf"}) refuse(attend({"--scale", text}), "expected a finite f32");
  refuse(attend({"--softcap", "-1"}), "softcap is -1, expected a finite f32 >= 0");
  for (const char* text : {"1", "1,2,3", "1,", ",1", "1.5,2", "a,b", ",", "1;2"}) {
    refuse(attend({"--window", text}), std::string("--window is '") + text + "', expected ");
  }
  refuse(attend({"--kv-lengths", "3,"}), "--kv-lengths is '3,', expected whole numbers");
  refuse(attend({"--window", "-2,0"}), "--window has -2, expected -1 (unbounded) or 0..2147483647");
  refuse(attend({"--window", "0,2147483648"}), "--window has 2147483648");
  refuse(attend({"--window", "0,99999999999999999999"}), "'0,99999999999999999999', too large");
}

TEST_F(Command, ParametersMustFitTheArithmetic) {
  refuse(attend({"--scale", "1e39"}), "scale is 1e+39, expected a finite f32");
  refuse(attend({"--softcap", "1e39"}), "softcap is 1e+39, expected a finite f32");
  refuse(attend({"--softcap", "1e-50"}), "softcap is 1e-50, which rounds to 0 in f32");
  succeed(attend({"--scale", "1e39", "--softcap", "1e-50", "--dtype", "fp64"}));
}

TEST_F(Command, ChoicesAreNamed) {
  refuse(attend({"--dtype", "float"}), "--dtype is 'float', expected fp32, fp16, bf16 or fp64");
  refuse(attend({"--align", "bottom"}), "--align is 'bottom', expected top-left or bottom-right");
  refuse(attend({"--align", "offsets"}), "--align is 'offsets', expected top-left or bottom-right");
  refuse(attend({"--align", "top-left", "--align-offsets", "0"}), "contradicts --align-offsets");
  refuse(attend({"--device", "gpu"}), "--device is 'gpu', expected auto, reference or cuda");
}

TEST_F(Command, WhatTheDeviceLacksIsExitCode3) {
  refuse(attend({"--device", "cpu"}), "device cpu is not in this build", 3);
  refuse(attend({"--kernel", "attention_sm90"}), "no attention kernel 'attention_sm90', only attention_reference", 3);
}

TEST_F(Command, StandardOutputThatFailsIsAnError) {
  for (const std::vector<std::string>& arguments :
       {attend({"--json", "--out", "o.npy"}), attend({"--explain", "--out", "o.npy"}), {"info"}, {"--help"}}) {
    const CommandResult result = run(arguments, "/dev/full");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.err, "sorot: standard output cannot be written: No space left on device\n");
    EXPECT_EQ(files(), std::vector<std::string>{"x.npy"});
  }
}

TEST_F(Command, AReaderThatHasGoneEndsItInSilence) {
  write("old.npy", "old");
  for (const std::vector<std::string>& arguments : {attend({"--json", "--out", "old.npy"}),
                                                    {"info"},
                                                    {"--help"},
                                                    {"check", "--fuzz", "1", "--device", "reference"}}) {
    int ends[2] = {};
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    const CommandResult result = run_into(arguments, ends[1]);
    close(ends[1]);
    EXPECT_EQ(result.exit_code, 128 + SIGPIPE);
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(files(), (std::vector<std::string>{"old.npy", "x.npy"}));
    EXPECT_EQ(std::filesystem::file_size(path("old.npy")), 3U);
  }
}

}  // namespace
}  // namespace sorot::tests
