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

  // What the node makes of `value`.
  void Take(int index, int value) {
    if (is_bounded_ && AddStep(index, value)) return;
    const ValueRange& range = plan_.values[plan_.nodes[index].results[0]].range;
    is_bounded_ = std::isfinite(range.low) && std::isfinite(range.high);
    steps_ = {{BoundKind::kWithin, {}, index}};
  }

  void TakeBias(const Operand& bias, int64_t channels) {
    if (ValueOf(bias) < 0) return;
    is_bounded_ = IsVector(bias, channels);
    steps_.push_back({BoundKind::kAdd, bias});
  }

  std::optional<std::vector<BoundStep>> Steps() && {
    if (!is_bounded_) return std::nullopt;
    return std::move(steps_);
  }

 private:
  const Dims& DimsOf(int value) const { return plan_.values[value].desc.dims; }

  // Whether there is one.
  bool AddStep(int index, int value) {
    const Node& node = plan_.nodes[index];
    if (node.kind != NodeKind::kPointwise) return false;
    if (node.op == OpKind::kBatchNorm) return AddBatchNorm(index, value);
    if (node.operands.size() == 2) return AddBinary(node, value);
    return ValueOf(node.operands[0]) == value && AddUnary(node);
  }

  // Folds of what was bounded need both sides' bounds, of which one may be
  // infinite.
  bool Add(BoundKind kind, float number) {
    if (!std::isfinite(number)) return false;
    if (kind == BoundKind::kFold && caps_infinities_) return false;
    caps_infinities_ |= number != 0.0f && (kind == BoundKind::kAtMost ||
                                           kind == BoundKind::kAtLeast);
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

  bool AddBatchNorm(int index, int value) {
    const Node& node = plan_.nodes[index];
    if (ValueOf(node.operands[0]) != value || caps_infinities_) return false;
    for (size_t i = 1; i < node.operands.size(); ++i) {
      if (ValueOf(node.operands[i]) < 0) continue;
      if (!IsVector(node.operands[i], DimsOf(value)[1])) return false;
    }
    steps_.push_back({BoundKind::kBatchNorm, {}, index});
    return true;
  }

  bool AddBinary(const Node& node, int value) {
    const bool is_first = ValueOf(node.operands[0]) == value;
    if (!is_first && ValueOf(node.operands[1]) != value) return false;
    const Operand& other = node.operands[is_first ? 1 : 0];
    switch (node.op) {
      case OpKind::kAdd:
        return AddOperand(BoundKind::kAdd, other, value);
      case OpKind::kMinimum:
        return AddOperand(BoundKind::kAtMost, other, value);
      case OpKind::kMaximum:
        return AddOperand(BoundKind::kAtLeast, other, value);
      case OpKind::kMul:
        return AddOperand(BoundKind::kMultiply, other, value);
      case OpKind::kSub:  // other - x, or -(other - x)
        return Add(BoundKind::kMultiply, -1.0f) &&
               AddOperand(BoundKind::kAdd, other, value) &&
               (!is_first || Add(BoundKind::kMultiply, -1.0f));
      case OpKind::kDiv: {
        const float* const constant = std::get_if<float>(&other);
        return is_first && constant != nullptr &&
               Add(BoundKind::kMultiply, 1.0f / *constant);
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
    if (kind == BoundKind::kMultiply && caps_infinities_) return false;
    caps_infinities_ |=
        kind == BoundKind::kAtMost || kind == BoundKind::kAtLeast;
    steps_.push_back({kind, operand});
    return true;
  }

  bool AddUnary(const Node& node) {
    const Attributes& attributes = node.attributes;
    if (const auto* leaky = std::get_if<LeakyReluAttributes>(&attributes)) {
      const float slope = leaky->negative_slope;
      if (slope >= 0.0f && slope <= 1.0f) return Add(BoundKind::kLeak, slope);
      return Add(BoundKind::kFold, std::max(std::abs(slope), 1.0f));
    }
    if (const auto* elu = std::get_if<EluAttributes>(&attributes)) {
      if (elu->alpha < 0.0f || elu->alpha > 1.0f) return false;
      caps_infinities_ |= elu->alpha != 0.0f;
      return Add(BoundKind::kGate, elu->alpha);
    }
    if (const auto* clamp = std::get_if<ClampAttributes>(&attributes)) {
      return (!clamp->min || Add(BoundKind::kAtLeast, *clamp->min)) &&
             (!clamp->max || Add(BoundKind::kAtMost, *clamp->max));
    }
    switch (node.op) {
      case OpKind::kRelu:
        return Add(BoundKind::kAtLeast, 0.0f);
      case OpKind::kGelu:
      case OpKind::kSilu:
      case OpKind::kMish:
      case OpKind::kHardswish:
        return Add(BoundKind::kGate, 0.376f);  // hardswish's, the lowest
      case OpKind::kNeg:
        return Add(BoundKind::kMultiply, -1.0f);
      case OpKind::kAbs:
        return Add(BoundKind::kFold, 1.0f);
      default:
        return false;
    }
  }

  const LoweredPlan& plan_;
  std::vector<BoundStep> steps_;
  bool is_bounded_ = true;
  // Whether a number that is not 0 may have been made of an infinity: a bound
  // of what is finite knows it as that of its side alone, which factors of both
  // signs mix up with the other.
  bool caps_infinities_ = false;
};

}  // namespace

std::optional<std::vector<BoundStep>> BoundSteps(const LoweredPlan& plan,
                                                 const Node& conv,
                                                 const std::vector<int>& ops) {
  Bounding bounding(plan);
  int value = conv.results[0];
  const int64_t channels = plan.values[value].desc.dims[1];
  bounding.TakeBias(conv.operands[2], channels);
  for (const int op : ops) {
    bounding.Take(op, value);
    value = plan.nodes[op].results[0];
  }
  return std::move(bounding).Steps();
}

}  // namespace kiln
