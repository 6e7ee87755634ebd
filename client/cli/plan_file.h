#ifndef KILN_CLIENT_CLI_PLAN_FILE_H_
#define KILN_CLIENT_CLI_PLAN_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/terminal.h"
#include "jit/plan/plan.h"

namespace kiln::cli {

// A plan from text or, if `json`, from the JSON form of kiln.v1.Plan. Valid:
// ValidatePlan accepts it.
//
// Errors: INVALID_ARGUMENT, UNIMPLEMENTED, the message beginning with `name`.
absl::StatusOr<Plan> ParsePlan(const std::string& name, std::string_view text,
                               bool json);

// ParsePlan of a file, "-" for standard input; JSON if its name ends in
// ".json".
//
// Errors: those of ReadFile (file_bytes.h) and ParsePlan.
absl::StatusOr<Plan> LoadPlan(const std::string& path);

// "p2_conv" of "plans/p2_conv.kiln"; "plan" of "-".
std::string StemOf(const std::string& path);

// Each text of `targets` in its resolved form ("sm_90a/132"); for a bare
// architecture that says which SM count was assumed in `remarks`.
//
// Errors: INVALID_ARGUMENT.
absl::StatusOr<std::vector<std::string>> ResolveTargets(
    const std::vector<std::string>& targets, std::vector<std::string>& remarks);

// The same, with the remarks noted on `terminal` if all targets resolve.
absl::StatusOr<std::vector<std::string>> ResolveTargets(
    const std::vector<std::string>& targets, const Terminal& terminal);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_PLAN_FILE_H_
