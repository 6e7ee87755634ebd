#ifndef KILN_JIT_PLAN_PLAN_TEXT_H_
#define KILN_JIT_PLAN_PLAN_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "jit/plan/plan.h"

namespace kiln {

inline constexpr size_t kMaxPlanTextBytes = size_t{1} << 20;

// Reads the text form of a plan (grammar: docs/plan-language.md):
//
//   # conv, norm, activation
//   grade fp32
//   input x: f32[2,8,16,16]
//   param w: f32[64,8,3,3]
//   param b: f32[64]
//   y = conv2d(x, w, b, padding=1)
//   z = group_norm(y, num_groups=16)
//   t = clamp(z, min=0.0)
//   output t: f16
//
// Errors: INVALID_ARGUMENT with line and column. The result is well-formed
// but not validated: call ValidatePlan.
absl::StatusOr<Plan> ParsePlanText(std::string_view text);

// The text form of any plan. ParsePlanText(ToText(p)) equals any valid `p`, the
// payloads of NaNs excepted; names that are missing, repeated or not spellable
// are replaced by v0, v1, ...
std::string ToText(const Plan& plan);

}  // namespace kiln

#endif  // KILN_JIT_PLAN_PLAN_TEXT_H_
