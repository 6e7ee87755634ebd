#include "jit/compile/op_cost.h"

namespace kiln {

int64_t InstructionsOf(OpKind op) {
  switch (op) {
    case OpKind::kGelu:
    case OpKind::kTanh:
    case OpKind::kSigmoid:
    case OpKind::kSilu:
    case OpKind::kMish:
    case OpKind::kSoftplus:
    case OpKind::kElu:
    case OpKind::kExp:
    case OpKind::kSoftmax:
    case OpKind::kDiv:
    case OpKind::kSqrt:
      return 15;
    case OpKind::kGroupNorm:
    case OpKind::kBatchNorm:
      return 6;
    default:
      return 3;
  }
}

int64_t InstructionsOf(const LoweredPlan& plan, const std::vector<int>& nodes) {
  int64_t instructions = 0;
  for (const int node : nodes) {
    instructions += InstructionsOf(plan.nodes[node].op);
  }
  return instructions;
}

}  // namespace kiln
