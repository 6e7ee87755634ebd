#include "jit/compile/folded_factors.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "jit/compile/call_rewrites.h"
#include "jit/compile/value_ranges.h"

namespace kiln {
namespace {

class Folding {
 public:
  Folding(const LoweredPlan& plan, const Kernel& kernel)
      : plan_(plan), kernel_(kernel), nodes_(kernel.group.epilogue) {}

  FoldedFactors Run() && {
    for (const int index : nodes_) {
      const Node& node = plan_.nodes[index];
      if (IsTanhByPower(plan_, node)) ScaleNorm(ValueOf(node.operands[0]));
      if (IsHardswishOfTanh(node)) {
        folded_.skipped.insert(ValueOf(node.operands[0]));
      }
    }
    if (!FoldsFactors(plan_, kernel_)) return std::move(folded_);
    if (TakesFactor(Result())) Scale(Result());
    if (CanScaleSums()) folded_.factors[Sums()] = kLog2E;
    return std::move(folded_);
  }

 private:
  int Sums() const { return plan_.nodes[kernel_.group.anchor].results[0]; }
  int Result() const {
    return ValueOf(plan_.nodes[kernel_.group.tail].operands[0]);
  }

  void ScaleNorm(int value) {
    const Node* const node = OnlyReadOnce(value);
    if (node != nullptr && node->IsNorm()) folded_.factors[value] = kTwoLog2E;
  }

  // Whether `value` times a constant costs no more than itself: what is made of
  // a tanh or its power by constants, and what else is added to that.
  bool TakesFactor(int value) const {
    const Node* const node = OnlyReadOnce(value);
    if (node == nullptr) return false;
    if (node->op == OpKind::kAdd) {
      return std::any_of(node->operands.begin(), node->operands.end(),
                         [&](const Operand& operand) {
                           return TakesFactor(ValueOf(operand));
                         });
    }
    return IsTanhByPower(plan_, *node) || IsHardswishOfTanh(*node) ||
           (node->op == OpKind::kHardswish &&
            IsWithin(RangeOf(plan_, node->operands[0]), -2.0f, 3.0f));
  }

  void Scale(int value) {
    folded_.factors[value] = kLog2E;
    const Node* const node = OnlyReadOnce(value);
    if (node->op == OpKind::kAdd) {
      for (const Operand& operand : node->operands) {
        if (TakesFactor(ValueOf(operand))) Scale(ValueOf(operand));
      }
    } else if (node->op == OpKind::kTanh) {
      Drop(value, 1.0f);
    } else if (IsHardswishOfTanh(*node)) {
      Drop(value, 2.0f / 3.0f);
    }
  }

  void Drop(int value, float constant) {
    folded_.without_constant.insert(value);
    folded_.constant += constant;
  }

  // Whether that is worth something, and all that reads the convolution's
  // result here can take it so.
  bool CanScaleSums() const {
    if (!kernel_.conv) return false;
    const int sums = Sums();
    bool pays = Result() == sums;
    for (const Store& store : kernel_.stores) {
      if (store.value == sums) return false;
    }
    for (const int index : nodes_) {
      const Node& node = plan_.nodes[index];
      for (size_t i = 0; i < node.operands.size(); ++i) {
        if (ValueOf(node.operands[i]) != sums) continue;
        const bool is_scaled =
            node.op == OpKind::kAdd && folded_.Of(node.results[0]) == kLog2E;
        if (!is_scaled && !(node.IsNorm() && i == 0)) return false;
        pays |= is_scaled;
      }
    }
    return pays;
  }

  bool IsHardswishOfTanh(const Node& node) const {
    if (node.op != OpKind::kHardswish) return false;
    const Node* const tanh = OnlyReadOnce(ValueOf(node.operands[0]));
    return tanh != nullptr && IsTanhByPower(plan_, *tanh);
  }

  // The node behind the convolution that makes `value`, if one operand of one
  // node is all that needs the value; else null.
  const Node* OnlyReadOnce(int value) const {
    if (value < 0) return nullptr;
    const int producer = plan_.values[value].producer;
    const bool is_here =
        std::find(nodes_.begin(), nodes_.end(), producer) != nodes_.end();
    return is_here && plan_.CountUses(value) == 1 ? &plan_.nodes[producer]
                                                  : nullptr;
  }

  const LoweredPlan& plan_;
  const Kernel& kernel_;
  const std::vector<int>& nodes_;
  FoldedFactors folded_;
};

}  // namespace

float FoldedFactors::Of(int value) const {
  const auto factor = factors.find(value);
  return factor == factors.end() ? 1.0f : factor->second;
}

bool FoldsFactors(const LoweredPlan& plan, const Kernel& kernel) {
  const int tail = kernel.group.tail;
  return tail >= 0 && plan.nodes[tail].op == OpKind::kLogSumExp;
}

FoldedFactors FoldFactors(const LoweredPlan& plan, const Kernel& kernel) {
  if (!FoldsFactors(plan, kernel) && kernel.group.shares.empty()) return {};
  return Folding(plan, kernel).Run();
}

}  // namespace kiln
