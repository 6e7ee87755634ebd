#ifndef KILN_CLIENT_CLI_MANIFEST_H_
#define KILN_CLIENT_CLI_MANIFEST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/plan/plan.h"

namespace kiln::cli {

// One thing to prewarm: a plan for one target.
struct WorkItem {
  std::string name;    // "fleet.jsonl:12", "plans/p1.kiln"
  std::string target;  // resolved: "sm_90a/132"
  absl::StatusOr<Plan> plan;
  std::string variant = {};  // empty: the daemon's choice

  // Names the work, however the files are called: SHA-256 of plan, target and
  // variant.
  std::string Id() const;
};

// Everything that `paths` ask for. A path that ends in .jsonl is a manifest:
// each line is a JSON object
//
//   {"plan": "<plan text, or path relative to the manifest>",
//    "targets": ["sm_90a/132", "a100"], "grade": "fp32", "variant": "conv1"}
//
// where all but "plan" may be missing (`targets`; the plan's; the daemon's
// choice). Any other path is a plan. If `targets` is not empty it replaces
// those of manifests. A line or plan that is wrong becomes an item with its
// status, as does one with any other field or without any target.
//
// Errors: a manifest that cannot be read or is longer than 256 MiB.
absl::StatusOr<std::vector<WorkItem>> LoadWork(
    const std::vector<std::string>& paths,
    const std::vector<std::string>& targets);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_MANIFEST_H_
