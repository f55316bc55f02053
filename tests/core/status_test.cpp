#include "sorot/status.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

namespace {

using sorot::Status;
using sorot::StatusCode;

static_assert(std::is_trivially_copyable_v<Status>);

TEST(Status, DefaultIsOk) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kOk);
  EXPECT_STREQ(status.message(), "");
  EXPECT_EQ(status.device_error(), 0);
}

TEST(Status, KeepsCodeMessageAndDeviceError) {
  const Status status(StatusCode::kDeviceError, "launch failed", 700);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kDeviceError);
  EXPECT_STREQ(status.message(), "launch failed");
  EXPECT_EQ(status.device_error(), 700);
}

TEST(Status, CutsALongMessageAndToleratesNull) {
  const std::string text(10'000, 'x');
  const Status status(StatusCode::kInternal, text.c_str());
  const std::string kept = status.message();
  EXPECT_GT(kept.size(), 200U);
  EXPECT_LT(kept.size(), sizeof(Status));
  EXPECT_EQ(kept, text.substr(0, kept.size()));
  EXPECT_STREQ(Status(StatusCode::kInternal, nullptr).message(), "");
}

TEST(Status, EveryCodeHasAName) {
  for (int code = 0; code <= static_cast<int>(StatusCode::kInternal); ++code) {
    EXPECT_EQ(std::string(name(static_cast<StatusCode>(code))).substr(0, 1), "k") << code;
  }
  EXPECT_STREQ(name(static_cast<StatusCode>(99)), "unknown StatusCode");
}

}  // namespace
