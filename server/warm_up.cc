#include "server/warm_up.h"

#include <spdlog/spdlog.h>

#include <string>

#include "jit/compile/compile_plan.h"
#include "jit/plan/plan_text.h"
#include "proto/artifact_converter.h"
#include "proto/plan_converter.h"
#include "server/keyed_request.h"
#include "server/random_id.h"
#include "server/stored_artifact.h"

namespace kiln {
namespace {

constexpr char kPlan[] = R"(input x: f32[1,4,4,4]
param weight: f32[4]
y = group_norm(x, weight, num_groups=2)
z = relu(y)
output z
)";

absl::Status TakeThrough() {
  const absl::StatusOr<Plan> plan = ParsePlanText(kPlan);
  if (!plan.ok()) return plan.status();
  const absl::StatusOr<KeyedRequest> keyed =
      MakeKeyedRequest(ToProto(*plan), "cpu", v1::GRADE_UNSPECIFIED, "");
  if (!keyed.ok()) return keyed.status();
  const absl::StatusOr<Artifact> artifact =
      CompilePlan(keyed->request, nullptr);
  if (!artifact.ok()) return artifact.status();
  return MakeStoredArtifact(SerializeArtifact(*artifact)).status();
}

}  // namespace

void WarmUp() {
  RandomBytes(8);
  const absl::Status dropped = TakeThrough();
  if (!dropped.ok()) {
    spdlog::error("Warming up fails: {}", std::string(dropped.message()));
  }
}

}  // namespace kiln
