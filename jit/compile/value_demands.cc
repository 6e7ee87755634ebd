#include "jit/compile/value_demands.h"

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include "jit/compile/value_ranges.h"

namespace kiln {
namespace {

class DemandSearch {
 public:
  DemandSearch(Grade grade, LoweredPlan* plan)
      : grade_(grade), plan_(plan), is_rounded_(plan->values.size()) {}

  // From the outputs back, so that readers come before what they read.
  void Run() && {
    FindRounded();
    for (size_t i = 0; i < is_rounded_.size(); ++i) {
      plan_->values[i].exactness =
          is_rounded_[i] ? Exactness::kTf32 : Exactness::kBesideOne;
    }
    for (const PlanOutput& output : plan_->outputs) {
      Demand(output.value.index, Exactness::kUlps);
    }
    for (auto node = plan_->nodes.rbegin(); node != plan_->nodes.rend();
         ++node) {
      for (size_t i = 0; i < node->operands.size(); ++i) {
        const int value = ValueOf(node->operands[i]);
        if (value >= 0) Demand(value, DemandOf(*node, i));
      }
    }
  }

 private:
  // Values made of products of operands with 11 bits.
  void FindRounded() {
    if (grade_ != Grade::kTf32) return;
    for (const Node& node : plan_->nodes) {
      bool any = node.IsConvolution();
      for (const Operand& operand : node.operands) {
        any |= ValueOf(operand) >= 0 && is_rounded_[ValueOf(operand)];
      }
      for (const int result : node.results) is_rounded_[result] = any;
    }
  }

  // The strictest counts, which comes first.
  void Demand(int value, Exactness exactness) {
    Exactness& known = plan_->values[value].exactness;
    known = std::min(known, exactness);
  }

  // What `node` asks of operand number `i`.
  Exactness DemandOf(const Node& node, size_t i) const {
    if (SumsPowers(node)) return Exactness::kTf32;
    // An error of x is as large in a share, relative to that.
    const bool is_power = node.op == OpKind::kSoftmax && i == 0;
    if (is_power && is_rounded_[ValueOf(node.operands[i])]) {
      return Exactness::kBesideOne;
    }
    if (MayEnlarge(node, i)) return Exactness::kUlps;
    Exactness strictest = Exactness::kTf32;
    for (const int result : node.results) {
      strictest = std::min(strictest, plan_->values[result].exactness);
    }
    return strictest;
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
  std::vector<bool> is_rounded_;  // by value
};

}  // namespace

void FindDemands(Grade grade, LoweredPlan* plan) {
  DemandSearch(grade, plan).Run();
}

}  // namespace kiln
