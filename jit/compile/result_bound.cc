#include "jit/compile/result_bound.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

namespace kiln {
namespace {

class Bounding {
 public:
  explicit Bounding(const LoweredPlan& plan) : plan_(plan) {}

  // Whether `node` has a step, for results that are made of `value`.
  bool Take(int index, int value) {
    const Node& node = plan_.nodes[index];
    if (node.kind != NodeKind::kPointwise) return false;
    const ValueRange& range = plan_.values[node.results[0]].range;
    const float most = std::max(-range.low, range.high);
    if (std::isfinite(most)) return Add(BoundKind::kAtMost, most);
    if (node.op == OpKind::kBatchNorm) return TakeBatchNorm(index, value);
    if (node.operands.size() == 2) return TakeBinary(node, value);
    return TakeUnary(node);
  }

  bool AddBias(const Operand& bias, int64_t channels) {
    if (ValueOf(bias) < 0) return true;
    if (!IsVector(bias, channels)) return false;
    steps_.push_back({BoundKind::kPlus, bias});
    return true;
  }

  std::vector<BoundStep> Steps() && { return std::move(steps_); }

 private:
  const Dims& DimsOf(int value) const { return plan_.values[value].desc.dims; }

  bool Add(BoundKind kind, float number) {
    if (!std::isfinite(number)) return false;
    steps_.push_back({kind, number});
    return true;
  }

  bool IsInput(int value) const {
    return value < plan_.num_inputs || plan_.values[value].view_of >= 0;
  }
  bool IsVector(const Operand& operand, int64_t channels) const {
    const int value = ValueOf(operand);
    return IsInput(value) && DimsOf(value) == Dims{channels};
  }

  bool TakeBatchNorm(int index, int value) {
    const Node& node = plan_.nodes[index];
    if (ValueOf(node.operands[0]) != value) return false;
    for (size_t i = 1; i < node.operands.size(); ++i) {
      if (ValueOf(node.operands[i]) < 0) continue;
      if (!IsVector(node.operands[i], DimsOf(value)[1])) return false;
    }
    steps_.push_back({BoundKind::kBatchNorm, {}, index});
    return true;
  }

  bool TakeBinary(const Node& node, int value) {
    const bool is_first = ValueOf(node.operands[0]) == value;
    const Operand& other = node.operands[is_first ? 1 : 0];
    if (ValueOf(other) == value) return false;
    switch (node.op) {
      case OpKind::kAdd:
      case OpKind::kSub:
      case OpKind::kMinimum:
      case OpKind::kMaximum:
        return AddOperand(BoundKind::kPlus, other, value);
      case OpKind::kMul:
        return AddOperand(BoundKind::kTimes, other, value);
      case OpKind::kDiv: {
        const float* const constant = std::get_if<float>(&other);
        return is_first && constant != nullptr &&
               Add(BoundKind::kTimes, 1.0f / *constant);
      }
      default:
        return false;
    }
  }

  bool AddOperand(BoundKind kind, const Operand& operand, int value) {
    if (const float* const constant = std::get_if<float>(&operand)) {
      return Add(kind, *constant);
    }
    const int other = ValueOf(operand);
    const Dims4 channels = {1, AlignDims(DimsOf(value))[1], 1, 1};
    if (!IsInput(other) || AlignDims(DimsOf(other)) != channels) return false;
    steps_.push_back({kind, operand});
    return true;
  }

  bool TakeUnary(const Node& node) {
    const Attributes& attributes = node.attributes;
    if (const auto* leaky = std::get_if<LeakyReluAttributes>(&attributes)) {
      return AddUnlessLess(std::abs(leaky->negative_slope));
    }
    if (const auto* elu = std::get_if<EluAttributes>(&attributes)) {
      return AddUnlessLess(std::abs(elu->alpha));
    }
    if (const auto* clamp = std::get_if<ClampAttributes>(&attributes)) {
      return Add(BoundKind::kPlus, clamp->min.value_or(0.0f)) &&
             Add(BoundKind::kPlus, clamp->max.value_or(0.0f));
    }
    switch (node.op) {
      case OpKind::kRelu:
      case OpKind::kGelu:
      case OpKind::kSilu:
      case OpKind::kMish:
      case OpKind::kHardswish:
      case OpKind::kAbs:
      case OpKind::kNeg:
        return true;  // nowhere farther from 0 than the operand
      default:
        return false;
    }
  }
  // A factor of some operands, where others have 1.
  bool AddUnlessLess(float factor) {
    return factor <= 1.0f || Add(BoundKind::kTimes, factor);
  }

  const LoweredPlan& plan_;
  std::vector<BoundStep> steps_;
};

}  // namespace

std::optional<std::vector<BoundStep>> BoundSteps(const LoweredPlan& plan,
                                                 const Node& conv,
                                                 const std::vector<int>& ops) {
  Bounding bounding(plan);
  int value = conv.results[0];
  const int64_t channels = plan.values[value].desc.dims[1];
  if (!bounding.AddBias(conv.operands[2], channels)) return std::nullopt;
  for (const int op : ops) {
    if (!bounding.Take(op, value)) return std::nullopt;
    value = plan.nodes[op].results[0];
  }
  return std::move(bounding).Steps();
}

}  // namespace kiln
