#include "jit/compile/value_demands.h"

#include <cmath>
#include <variant>
#include <vector>

#include "jit/compile/value_ranges.h"

namespace kiln {
namespace {

class DemandSearch {
 public:
  DemandSearch(Grade grade, LoweredPlan* plan)
      : grade_(grade), plan_(plan), needs_ulps_(plan->values.size()) {}

  // From the outputs back, so that readers come before what they read.
  void Run() && {
    for (const PlanOutput& output : plan_->outputs) {
      needs_ulps_[output.value.index] = true;
    }
    for (auto node = plan_->nodes.rbegin(); node != plan_->nodes.rend();
         ++node) {
      for (size_t i = 0; i < node->operands.size(); ++i) {
        const int value = ValueOf(node->operands[i]);
        if (value < 0 || SumsPowers(*node)) continue;
        if (ResultNeedsUlps(*node) || MayEnlarge(*node, i)) {
          needs_ulps_[value] = true;
        }
      }
    }
    const std::vector<bool> is_rounded = FindRounded();
    for (size_t i = 0; i < needs_ulps_.size(); ++i) {
      plan_->values[i].exactness = needs_ulps_[i]  ? Exactness::kUlps
                                   : is_rounded[i] ? Exactness::kTf32
                                                   : Exactness::kBesideOne;
    }
  }

 private:
  // Values made of products of operands with 11 bits.
  std::vector<bool> FindRounded() const {
    std::vector<bool> is_rounded(plan_->values.size());
    if (grade_ != Grade::kTf32) return is_rounded;
    for (const Node& node : plan_->nodes) {
      bool any = node.IsConvolution();
      for (const Operand& operand : node.operands) {
        any |= ValueOf(operand) >= 0 && is_rounded[ValueOf(operand)];
      }
      for (const int result : node.results) is_rounded[result] = any;
    }
    return is_rounded;
  }

  bool ResultNeedsUlps(const Node& node) const {
    for (const int result : node.results) {
      if (needs_ulps_[result]) return true;
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

  const Grade grade_;
  LoweredPlan* const plan_;
  std::vector<bool> needs_ulps_;  // by value
};

}  // namespace

void FindDemands(Grade grade, LoweredPlan* plan) {
  DemandSearch(grade, plan).Run();
}

}  // namespace kiln
