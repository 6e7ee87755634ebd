#include "client/cli/exit_code.h"

#include <gtest/gtest.h>

#include "client/connection.h"
#include "jit/plan/errors.h"

namespace kiln::cli {
namespace {

TEST(ExitCodeTest, FollowsTheStatus) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), kOk);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), kFailure);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), kUsage);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), kUnreachable);
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("")), kNotPermitted);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), kDeadline);
  EXPECT_EQ(ExitCodeOf(absl::DataLossError("")), kCorruption);
}

TEST(ExitCodeTest, WrongPlansAreCompileErrors) {
  EXPECT_EQ(PlanExitCodeOf(absl::InvalidArgumentError("")), kCompileError);
  EXPECT_EQ(PlanExitCodeOf(absl::UnimplementedError("")), kCompileError);
  EXPECT_EQ(PlanExitCodeOf(absl::UnavailableError("")), kUnreachable);
}

TEST(ExitCodeTest, AWrongTargetIsUsage) {
  ErrorDetail target;
  target.field = "target";
  for (const absl::Status& status :
       {absl::InvalidArgumentError(""), absl::UnimplementedError("")}) {
    EXPECT_EQ(PlanExitCodeOf(WithDetail(status, target)), kUsage);
  }
}

TEST(ExitCodeTest, WrongVariantsAreUsageErrors) {
  EXPECT_EQ(PlanExitCodeOf(InvalidField("variant", "is none", "x", "y")),
            kUsage);
  EXPECT_EQ(PlanExitCodeOf(InvalidField("ops[0].kind", "is none", "x", "y")),
            kCompileError);
}

TEST(ExitCodeTest, DetailsDecideTheRest) {
  ErrorDetail log;
  log.compile_log = "error: ...";
  const absl::Status internal = absl::InternalError("");
  EXPECT_EQ(ExitCodeOf(internal), kFailure);
  EXPECT_EQ(ExitCodeOf(WithDetail(internal, log)), kCompileError);
  ErrorDetail protocol;
  protocol.field = client::kProtocolField;
  const absl::Status precondition = absl::FailedPreconditionError("");
  EXPECT_EQ(ExitCodeOf(precondition), kFailure);
  EXPECT_EQ(ExitCodeOf(WithDetail(precondition, protocol)), kIncompatible);
}

}  // namespace
}  // namespace kiln::cli
