#include "client/cli/exit_code.h"

#include "client/connection.h"
#include "jit/plan/errors.h"

namespace kiln::cli {
namespace {

// Of a request: what --variant gives.
constexpr char kVariantField[] = "variant";

}  // namespace

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
  const std::string field = DetailOf(status).field;
  if (is_wrong && (field == "target" || field == kVariantField)) return kUsage;
  if (is_wrong) {
    return kCompileError;
  }
  return ExitCodeOf(status);
}

}  // namespace kiln::cli
