#ifndef KILN_JIT_PLAN_CANONICAL_H_
#define KILN_JIT_PLAN_CANONICAL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/plan/plan.h"

namespace kiln {

// The one form in which a plan is hashed, compiled and stored: defaults
// explicit, dimensions counted from the front, unused ops and inputs dropped,
// no-ops (cast to the same type, 1x1 stride-1 unpadded pooling) removed,
// products written by hand replaced by the op that they are (named_product.h),
// equal ops merged, everything numbered by depth-first visit from the
// outputs, names removed. Renaming, permuting inputs or reordering ops does
// not change it; any other change does.
struct CanonicalPlan {
  Plan plan;                       // inputs are named i0, i1, ...; ops v0, ...
  std::vector<TensorDesc> values;  // of `plan`, as ValidatePlan returns them
  // Slots of an artifact are the canonical inputs, then the outputs.
  // slot_of_input[i] is the slot of the client's input i, or -1 if unused.
  std::vector<int> slot_of_input;
  // slot_of_output[i] is the slot of the client's output i.
  std::vector<int> slot_of_output;
};

// Errors: those of ValidatePlan.
absl::StatusOr<CanonicalPlan> Canonicalize(const Plan& plan);

// The canonical plan as key text: one field per line, floats by bit pattern.
std::string CanonicalText(const CanonicalPlan& plan);

}  // namespace kiln

#endif  // KILN_JIT_PLAN_CANONICAL_H_
