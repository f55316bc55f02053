#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sorot/dtype.h"

namespace sorot::tests {

/// What a run of the command left behind.
struct CommandResult {
  int exit_code = -1;  ///< 128 + signal if it died of one
  std::string out;
  std::string err;
};

/// Runs the built `sorot` in a folder of its own, which is empty at first and removed afterwards.
class CommandTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// Runs it in the folder. `err` is captured, and so is `out` unless it goes to that path.
  CommandResult run(const std::vector<std::string>& arguments, const char* stdout_path = nullptr) const;

  /// Runs it with that descriptor as its standard output.
  CommandResult run_into(const std::vector<std::string>& arguments, int out) const;

  /// Runs it and expects success: one line on standard error.
  CommandResult succeed(const std::vector<std::string>& arguments) const;

  /// Runs it and expects a refusal: that exit code, one line on standard error that holds `part`, nothing on
  /// standard output, and the folder as it was.
  void refuse(const std::vector<std::string>& arguments, std::string_view part, int exit_code = 2) const;

  std::string path(const std::string& name) const { return folder_ / name; }
  std::vector<std::string> files() const;  ///< names in the folder, sorted

  void write(const std::string& name, std::string_view bytes) const;

  /// A .npy file of these values, converted to the dtype.
  void write_npy(const std::string& name, DType dtype, const std::vector<std::int64_t>& shape,
                 const std::vector<double>& values) const;

  /// The same value everywhere.
  void fill_npy(const std::string& name, DType dtype, const std::vector<std::int64_t>& shape, double value = 0) const;

  struct Array {
    DType dtype = DType::none;
    std::vector<std::int64_t> shape;
    std::vector<double> values;
  };
  Array read(const std::string& name) const;

  std::filesystem::path folder_;
};

/// With x.npy in the folder, three words that look at each other.
class AttendCommandTest : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    fill_npy("x.npy", DType::f32, {3, 2}, 0.5);
  }
  /// attend with these options behind q, k and v.
  static std::vector<std::string> attend(std::vector<std::string> options) {
    options.insert(options.begin(), {"attend", "--q", "x.npy", "--k", "x.npy", "--v", "x.npy"});
    return options;
  }
};

}  // namespace sorot::tests
