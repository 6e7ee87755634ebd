#ifndef KILN_CLIENT_CLI_EXIT_CODE_H_
#define KILN_CLIENT_CLI_EXIT_CODE_H_

#include "absl/status/status.h"

namespace kiln::cli {

// How `kiln` ends; docs/errors.md.
enum ExitCode : int {
  kOk = 0,
  kFailure = 1,        // also: verification found a mismatch
  kUsage = 2,          // the command line is wrong
  kUnreachable = 3,    // no daemon, or it went away
  kNotPermitted = 4,   // another user's socket, a file that may not be read
  kCompileError = 5,   // the plan is wrong or does not compile
  kDeadline = 6,       // too late
  kPartly = 7,         // some of several parts failed
  kCorruption = 8,     // damaged cache entries
  kIncompatible = 9,   // the daemon speaks another protocol
  kInterrupted = 130,  // Ctrl-C
};

// Of a failed call.
ExitCode ExitCodeOf(const absl::Status& status);

// Of a failed call about a plan, where INVALID_ARGUMENT means the plan, unless
// its detail names the target or the variant.
ExitCode PlanExitCodeOf(const absl::Status& status);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_EXIT_CODE_H_
