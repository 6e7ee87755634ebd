#ifndef KILN_TESTS_SERVER_CPU_ARTIFACT_H_
#define KILN_TESTS_SERVER_CPU_ARTIFACT_H_

#include <cstdlib>
#include <string>
#include <string_view>

#include "jit/artifact/artifact.h"
#include "jit/plan/canonical.h"
#include "jit/plan/plan_text.h"

namespace kiln {

// relu of four floats: the smallest plan with something to get wrong.
inline constexpr std::string_view kReluPlan =
    "input x: f32[4]\n"
    "y = relu(x)\n"
    "output y\n";

// The canonical form of a plan that is known to be right.
inline CanonicalPlan CanonicalOf(std::string_view text) {
  const auto plan = ParsePlanText(text);
  if (!plan.ok()) abort();
  auto canonical = Canonicalize(*plan);
  if (!canonical.ok()) abort();
  return *std::move(canonical);
}

// What a compile of `text` for the cpu target gives.
inline Artifact CpuArtifact(std::string_view text) {
  const CanonicalPlan canonical = CanonicalOf(text);
  Artifact artifact;
  artifact.key = std::string(64, 'a');
  artifact.key_text = "test";
  artifact.canonical_plan = canonical.plan;
  artifact.target = Target{"cpu", 0};
  const auto add_slot = [&](const TensorDesc& desc, SlotRole role) {
    Slot slot;
    slot.desc = desc;
    slot.min_bytes = SizeBytes(desc);
    slot.align = ElementSize(desc.dtype);
    slot.role = role;
    artifact.slots.push_back(slot);
  };
  for (const PlanInput& input : canonical.plan.inputs) {
    add_slot(input.desc, SlotRole::kInput);
  }
  for (const PlanOutput& output : canonical.plan.outputs) {
    TensorDesc desc = canonical.values[output.value.index];
    desc.dtype = output.dtype;
    add_slot(desc, SlotRole::kOutput);
  }
  return artifact;
}

}  // namespace kiln

#endif  // KILN_TESTS_SERVER_CPU_ARTIFACT_H_
