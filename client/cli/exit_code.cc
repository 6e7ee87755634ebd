#include "client/cli/exit_code.h"

#include "client/connection.h"
#include "jit/plan/errors.h"

namespace kiln::cli {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kOk;
    case absl::StatusCode::kInvalidArgument:
      return kUsage;
    case absl::StatusCode::kUnavailable:
      return kUnreachable;
    case absl::StatusCode::kPermissionDenied:
      return kNotPermitted;
    case absl::StatusCode::kDeadlineExceeded:
      return kDeadline;
    case absl::StatusCode::kDataLoss:
      return kCorruption;
    case absl::StatusCode::kFailedPrecondition:
      return DetailOf(status).field == client::kProtocolField ? kIncompatible
                                                              : kFailure;
    case absl::StatusCode::kInternal:
      return DetailOf(status).compile_log.empty() ? kFailure : kCompileError;
    default:
      return kFailure;
  }
}

ExitCode PlanExitCodeOf(const absl::Status& status) {
  const bool is_wrong =
      absl::IsInvalidArgument(status) || absl::IsUnimplemented(status);
  if (is_wrong && DetailOf(status).field == "target") return kUsage;
  if (is_wrong) {
    return kCompileError;
  }
  return ExitCodeOf(status);
}

}  // namespace kiln::cli
