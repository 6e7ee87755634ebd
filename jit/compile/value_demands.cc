#include "jit/compile/value_demands.h"

#include <cmath>
#include <variant>

#include "jit/compile/value_ranges.h"

namespace kiln {
namespace {

class DemandSearch {
 public:
  explicit DemandSearch(LoweredPlan* plan) : plan_(plan) {}

  // From the outputs back, so that readers come before what they read.
  void Run() && {
    for (LoweredValue& value : plan_->values) value.needs_ulps = false;
    for (const PlanOutput& output : plan_->outputs) {
      plan_->values[output.value.index].needs_ulps = true;
    }
    for (auto node = plan_->nodes.rbegin(); node != plan_->nodes.rend();
         ++node) {
      for (size_t i = 0; i < node->operands.size(); ++i) {
        const int value = ValueOf(node->operands[i]);
        if (value < 0 || SumsPowers(*node)) continue;
        if (ResultNeedsUlps(*node) || MayEnlarge(*node, i)) {
          plan_->values[value].needs_ulps = true;
        }
      }
    }
  }

 private:
  bool ResultNeedsUlps(const Node& node) const {
    for (const int result : node.results) {
      if (plan_->values[result].needs_ulps) return true;
    }
    return false;
  }

  bool SumsPowers(const Node& node) const {
    return node.op == OpKind::kLogSumExp &&
           CountOf(ValueOf(node.operands[0])) > CountOf(node.results[0]);
  }

  int64_t CountOf(int value) const {
    return NumElements(plan_->values[value].desc.dims);
  }

  // Whether an error of operand number `i` may be larger in the result.
  bool MayEnlarge(const Node& node, size_t i) const {
    switch (node.op) {
      case OpKind::kAdd:
      case OpKind::kSub:
      case OpKind::kMinimum:
      case OpKind::kMaximum:
      case OpKind::kRelu:
      case OpKind::kClamp:
      case OpKind::kAbs:
      case OpKind::kNeg:
      case OpKind::kTanh:
      case OpKind::kHardsigmoid:
      case OpKind::kMaxPool2d:
      case OpKind::kMean:
      case OpKind::kAmax:
      case OpKind::kAmin:
        return false;
      case OpKind::kMul:
        return !IsWithin(RangeOf(*plan_, node.operands[1 - i]), -1.0f, 1.0f);
      case OpKind::kLeakyRelu:
        return !(std::fabs(std::get<LeakyReluAttributes>(node.attributes)
                               .negative_slope) <= 1.0f);
      case OpKind::kHardswish:  // its slope is (2 x + 3) / 6
        return !IsWithin(RangeOf(*plan_, node.operands[0]), -3.0f, 1.5f);
      default:
        return true;
    }
  }

  LoweredPlan* const plan_;
};

}  // namespace

void FindDemands(LoweredPlan* plan) { DemandSearch(plan).Run(); }

}  // namespace kiln
