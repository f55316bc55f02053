#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sorot/sorot.h"
#include "tests/support/device.h"
#include "tests/tools/command_fixture.h"

/// --device cuda, and the choices an emulated one offers, in whatever build this is and on whatever machine.
namespace sorot::tests {
namespace {

bool cuda_is_here() { return support::kHasCuda && support::Device::probe("cuda").ok(); }

/// Tests of the command that need a CUDA device, and those that need an emulated one.
class CudaCommand : public AttendCommandTest {
 protected:
  void SetUp() override {
    AttendCommandTest::SetUp();
    if (!cuda_is_here()) GTEST_SKIP() << "no CUDA device";
  }
};
class EmulatedCommand : public CudaCommand {
 protected:
  void SetUp() override {
    CudaCommand::SetUp();
    if (!support::kEmulated) GTEST_SKIP() << "CUDA is not emulated in this build";
  }
};
class DeviceCommand : public AttendCommandTest {};

TEST_F(DeviceCommand, ADeviceThatCannotBeHadIsExitCode3) {
  if (cuda_is_here()) GTEST_SKIP() << "there is a CUDA device";
  const char* why = "device cuda is not in this build of sorot, which has: reference";
  const Status status = support::Device::probe("cuda");
  if (support::kHasCuda) why = status.message();
  refuse(attend({"--device", "cuda"}), why, 3);
  refuse({"check", "--device", "cuda"}, why, 3);
}

TEST_F(DeviceCommand, ChoicesOfAnEmulatorNeedOne) {
  if (support::kEmulated) {
    for (const char* device : {"reference", "auto"}) {
      refuse(attend({"--device", device, "--profile", "86"}), "--profile is for --device cuda, not for reference");
      refuse({"check", "--device", device, "--schedule", "random"}, "--schedule is for --device cuda");
      refuse(attend({"--device", device, "--race"}), "--race is for --device cuda, not for reference");
      refuse(attend({"--device", device, "--seed", "1"}), "--seed is for --device cuda, not for reference");
    }
    return;
  }
  const char* why = "needs a build whose CUDA device is emulated";
  refuse(attend({"--profile", "86"}), std::string("--profile ") + why);
  refuse(attend({"--schedule", "forward"}), std::string("--schedule ") + why);
  refuse(attend({"--race"}), std::string("--race ") + why);
  refuse(attend({"--seed", "0"}), std::string("--seed ") + why);
  refuse({"check", "--profile=75"}, std::string("--profile ") + why);
  refuse({"check", "--schedule", "sideways"}, std::string("--schedule ") + why);
}

TEST_F(DeviceCommand, AutoTakesAGpuAndNeverAnEmulator) {
  const auto info = nlohmann::json::parse(run({"info", "--json"}).out);
  const bool gpu = cuda_is_here() && !support::kEmulated;
  EXPECT_EQ(info["auto"]["device"], gpu ? "cuda" : "reference");
  const auto report = nlohmann::json::parse(succeed(attend({"--json"})).out);
  EXPECT_EQ(report["device"], info["auto"]["device"]);
  if (support::kEmulated) {
    EXPECT_NE(info["auto"]["reason"].get<std::string>().find("emulated"), std::string::npos) << info["auto"];
  }
}

TEST_F(DeviceCommand, InfoSaysWhatCudaIs) {
  const auto info = nlohmann::json::parse(run({"info", "--json"}).out);
  if (!support::kHasCuda) {
    EXPECT_EQ(info["compilers"]["cuda"], nullptr);
    EXPECT_EQ(info["devices"].size(), 1U);
    return;
  }
  EXPECT_EQ(info["compilers"]["cuda"], build_info().cuda_compiler);
  const auto& cuda = info["devices"].back();
  EXPECT_EQ(cuda["name"], "cuda");
  EXPECT_EQ(cuda["emulated"], support::kEmulated);
  EXPECT_EQ(cuda["problem"] == "", cuda_is_here());
  EXPECT_EQ(cuda["model"] != "", cuda_is_here());
  EXPECT_GT(cuda["kernels"].size(), 0U);
  const std::string text = run({"info"}).out;
  EXPECT_NE(text.find("  cuda: " + info["compilers"]["cuda"].get<std::string>()), std::string::npos) << text;
  EXPECT_NE(text.find("attention by attention_simt for"), std::string::npos) << text;
}

TEST_F(CudaCommand, AttendGivesWhatTheReferenceGives) {
  write_npy("q.npy", DType::f32, {2, 3, 4}, std::vector<double>(24, 0.25));
  write_npy("k.npy", DType::f32, {1, 5, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2});
  write_npy("v.npy", DType::f32, {1, 5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  for (const std::string device : {"reference", "cuda"}) {
    const CommandResult result = succeed({"attend",       "--q",
                                          "q.npy",        "--k",
                                          "k.npy",        "--v",
                                          "v.npy",        "--causal",
                                          "--out",        device + ".npy",
                                          "--lse",        device + "_lse.npy",
                                          "--weights",    device + "_w.npy",
                                          "--kv-lengths", "4",
                                          "--align",      "bottom-right",
                                          "--device",     device});
    EXPECT_NE(result.err.find("attention on " + device + " by "), std::string::npos) << result.err;
  }
  for (const std::string output : {".npy", "_lse.npy", "_w.npy"}) {
    const Array expected = read("reference" + output);
    const Array actual = read("cuda" + output);
    ASSERT_EQ(actual.shape, expected.shape);
    for (std::size_t e = 0; e < expected.values.size(); ++e) {
      EXPECT_NEAR(actual.values[e], expected.values[e], 1e-5) << output << " element " << e;
    }
  }
}

TEST_F(CudaCommand, WhatCudaLacksIsExitCode3) {
  refuse(attend({"--device", "cuda", "--dtype", "fp64"}), "f64", 3);
  refuse(attend({"--device", "cuda", "--kernel", "attention_reference"}), "attention_reference", 3);
}

TEST_F(CudaCommand, ChecksACase) {
  const CommandResult result = run({"check", "--device", "cuda", "--only", "5"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_TRUE(result.out.ends_with("\n1 passed, 0 failed\n")) << result.out;
}

TEST_F(EmulatedCommand, BadChoicesAreNamed) {
  const std::string profiles = "expected one of 75, 80, 86, 90, 100, 120";
  refuse(attend({"--device", "cuda", "--profile", "70"}), "--profile is '70', " + profiles);
  refuse(attend({"--device", "cuda", "--profile", "sm_80"}), "--profile is 'sm_80', " + profiles);
  refuse(attend({"--device", "cuda", "--schedule", "sideways"}),
         "--schedule is 'sideways', expected forward, reverse or random");
  refuse(attend({"--device", "cuda", "--seed", "-1"}), "--seed is -1, expected 0 or more");
  refuse(attend({"--device", "cuda", "--seed", "one"}), "--seed is 'one', expected a whole number");
  refuse({"check", "--device", "cuda", "--profile", "0x50"}, "--profile is '0x50', " + profiles);
  refuse({"check", "--device", "cuda", "--schedule", "FORWARD"}, "--schedule is 'FORWARD', expected");
}

TEST_F(EmulatedCommand, EveryChoiceGivesTheSameBits) {
  succeed(attend({"--device", "cuda", "--out", "first.npy"}));
  for (const char* schedule : {"forward", "reverse", "random"}) {
    succeed(attend({"--device", "cuda", "--schedule", schedule, "--out", "o.npy"}));
    EXPECT_EQ(read("o.npy").values, read("first.npy").values) << schedule;
  }
  succeed(attend({"--device", "cuda", "--schedule", "random", "--seed", "7", "--race", "--out", "o.npy"}));
  EXPECT_EQ(read("o.npy").values, read("first.npy").values);
  for (const char* profile : {"75", "80", "86", "90", "100", "120"}) {
    succeed(attend({"--device", "cuda", "--profile", profile, "--out", "o.npy"}));
    EXPECT_EQ(read("o.npy").shape, read("first.npy").shape) << profile;
  }
}

TEST_F(EmulatedCommand, CheckTakesAChoiceOrDrawsOne) {
  for (const std::vector<std::string>& choice : {std::vector<std::string>{},
                                                 {"--profile", "75"},
                                                 {"--schedule", "random"},
                                                 {"--profile=120", "--schedule=reverse"}}) {
    std::vector<std::string> arguments{"check", "--device", "cuda", "--fuzz", "2", "--seed", "9"};
    arguments.insert(arguments.end(), choice.begin(), choice.end());
    const CommandResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_TRUE(result.out.ends_with("\n2 passed, 0 failed\n")) << result.out;
    EXPECT_NE(result.out.find(" on cuda: runs"), std::string::npos) << result.out;
  }
}

}  // namespace
}  // namespace sorot::tests
