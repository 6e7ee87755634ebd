#include "jit/compile/new_artifact.h"

#include <vector>

namespace kiln {
namespace {

Slot MakeSlot(const TensorDesc& desc, SlotRole role) {
  return {desc, SizeBytes(desc), ElementSize(desc.dtype), role};
}

std::vector<Slot> SlotsOf(const CanonicalPlan& plan) {
  std::vector<Slot> slots;
  for (const PlanInput& input : plan.plan.inputs) {
    slots.push_back(MakeSlot(input.desc, input.role == InputRole::kParameter
                                             ? SlotRole::kParameter
                                             : SlotRole::kInput));
  }
  for (const PlanOutput& output : plan.plan.outputs) {
    slots.push_back(
        MakeSlot({output.dtype, plan.values[output.value.index].dims},
                 SlotRole::kOutput));
  }
  return slots;
}

}  // namespace

Artifact NewArtifact(const CompileRequest& request) {
  Artifact artifact;
  artifact.key_text = KeyText(request);
  artifact.key = KeyOf(artifact.key_text);
  artifact.canonical_plan = request.plan.plan;
  artifact.target = request.target;
  artifact.slots = SlotsOf(request.plan);
  return artifact;
}

}  // namespace kiln
