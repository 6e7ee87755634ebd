#include "server/keyed_request.h"

#include <utility>

#include "jit/compile/tuning.h"
#include "jit/plan/errors.h"
#include "proto/plan_converter.h"
#include "server/errors.h"

namespace kiln {
namespace {

// Some thousand plans of the usual few KiB.
constexpr int64_t kTableBytes = int64_t{16} << 20;

int64_t SizeOf(const KeyedRequest& keyed) {
  // The canonical plan takes about as much as its text.
  return sizeof(KeyedRequest) + 4 * keyed.key_text.size();
}

// Equal bytes mean equal questions; the reverse need not hold.
std::string Question(const v1::Plan& plan, const std::string& target,
                     v1::Grade grade, const std::string& variant) {
  std::string question = plan.SerializeAsString();
  question += static_cast<char>(grade);
  question += target;
  question += '\0';
  question += variant;
  return question;
}

absl::Status CheckVariant(const std::string& variant, const Target& target) {
  const absl::StatusOr<Tuning> tuning = ParseTuning(variant);
  if (!tuning.ok() || !target.is_cpu() || *tuning == Tuning{}) {
    return tuning.status();
  }
  return InvalidField("variant", "The cpu target has no schedules.", variant,
                      "auto");
}

}  // namespace

absl::StatusOr<KeyedRequest> MakeKeyedRequest(const v1::Plan& message,
                                              const std::string& target_text,
                                              v1::Grade grade,
                                              const std::string& toolchain_id,
                                              const std::string& variant) {
  absl::StatusOr<Plan> plan = FromProto(message);
  if (!plan.ok()) return plan.status();
  if (grade != v1::GRADE_UNSPECIFIED) {
    const absl::StatusOr<Grade> given = FromProto(grade);
    if (!given.ok()) return given.status();
    plan->grade = *given;
  }
  absl::StatusOr<Target> target = ParseTarget(target_text);
  if (!target.ok()) return target.status();
  const absl::Status checked = CheckVariant(variant, *target);
  if (!checked.ok()) return checked;
  if (!target->is_cpu() && toolchain_id.empty()) return NoToolchain();
  absl::StatusOr<CanonicalPlan> canonical = Canonicalize(*plan);
  if (!canonical.ok()) return canonical.status();

  KeyedRequest keyed;
  keyed.request.plan = *std::move(canonical);
  keyed.request.toolchain = target->is_cpu() ? std::string() : toolchain_id;
  keyed.request.target = *std::move(target);
  keyed.request.variant = variant;
  keyed.key_text = KeyText(keyed.request);
  keyed.key = KeyOf(keyed.key_text);
  return keyed;
}

KeyedRequestTable::KeyedRequestTable(std::string toolchain_id)
    : toolchain_id_(std::move(toolchain_id)),
      by_question_(kTableBytes, SizeOf) {}

absl::StatusOr<KeyedRequestTable::Shared> KeyedRequestTable::Get(
    const v1::Plan& plan, const std::string& target, v1::Grade grade,
    const std::string& variant) {
  const std::string question = Question(plan, target, grade, variant);
  if (Shared known = by_question_.Peek(question)) return known;
  absl::StatusOr<KeyedRequest> made =
      MakeKeyedRequest(plan, target, grade, toolchain_id_, variant);
  if (!made.ok()) return made.status();
  auto keyed = std::make_shared<const KeyedRequest>(*std::move(made));
  const auto lookup =
      by_question_.Find(question, [](const absl::StatusOr<Shared>&) {});
  if (lookup.outcome == SingleFlightLru<KeyedRequest>::Outcome::kLead) {
    by_question_.Complete(question, keyed);
  }
  return keyed;
}

}  // namespace kiln
