#include "server/keyed_request.h"

#include <utility>

#include "proto/plan_converter.h"
#include "server/errors.h"

namespace kiln {

absl::StatusOr<KeyedRequest> MakeKeyedRequest(
    const v1::Plan& message, const std::string& target_text, v1::Grade grade,
    const std::string& toolchain_id) {
  absl::StatusOr<Plan> plan = FromProto(message);
  if (!plan.ok()) return plan.status();
  if (grade != v1::GRADE_UNSPECIFIED) {
    const absl::StatusOr<Grade> given = FromProto(grade);
    if (!given.ok()) return given.status();
    plan->grade = *given;
  }
  absl::StatusOr<Target> target = ParseTarget(target_text);
  if (!target.ok()) return target.status();
  if (!target->is_cpu() && toolchain_id.empty()) return NoToolchain();
  absl::StatusOr<CanonicalPlan> canonical = Canonicalize(*plan);
  if (!canonical.ok()) return canonical.status();

  KeyedRequest keyed;
  keyed.request.plan = *std::move(canonical);
  keyed.request.toolchain = target->is_cpu() ? std::string() : toolchain_id;
  keyed.request.target = *std::move(target);
  keyed.key_text = KeyText(keyed.request);
  keyed.key = KeyOf(keyed.key_text);
  return keyed;
}

}  // namespace kiln
