// What a call is answered when code throws. Prevents an error without a word,
// and a call that the daemon takes for one under way for ever.
#include "server/errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <tuple>

#include "jit/plan/errors.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;

TEST(StatusOfTest, IsWhatTheBodyReturns) {
  EXPECT_TRUE(StatusOf([] { return absl::OkStatus(); }).ok());
  EXPECT_EQ(StatusOf([] { return UnknownSession("a"); }), UnknownSession("a"));
}

TEST(StatusOfTest, IsInternalWhereItThrows) {
  const absl::Status status = StatusOf([] {
    std::ignore = std::optional<int>().value();
    return absl::OkStatus();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("bad optional access"));
  EXPECT_THAT(DetailOf(status).hint, HasSubstr("report it"));
}

}  // namespace
}  // namespace kiln
