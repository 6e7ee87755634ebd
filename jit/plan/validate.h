#ifndef KILN_JIT_PLAN_VALIDATE_H_
#define KILN_JIT_PLAN_VALIDATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/plan/plan.h"

namespace kiln {

inline constexpr int kMaxOps = 64;
inline constexpr int kMaxInputs = 32;
inline constexpr int kMaxOutputs = 32;
inline constexpr int kMaxRank = 4;
inline constexpr int64_t kMaxDim = (int64_t{1} << 31) - 1;
inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;

// Type and extents of every value of `plan`, indexed by ValueId, by PyTorch's
// shape and promotion rules.
//
// Errors: INVALID_ARGUMENT with the field path, the value and the limit, for
// any plan that breaks a rule of docs/plan-language.md; UNIMPLEMENTED for an
// op number that this build does not know. Pure: same plan, same answer.
absl::StatusOr<std::vector<TensorDesc>> ValidatePlan(const Plan& plan);

// Gives each output i with untyped[i] the type that its value has by
// promotion; f32 if the plan is not valid.
void ResolveOutputTypes(Plan* plan, const std::vector<bool>& untyped);

}  // namespace kiln

#endif  // KILN_JIT_PLAN_VALIDATE_H_
