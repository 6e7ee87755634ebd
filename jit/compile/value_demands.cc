#include "jit/compile/value_demands.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>
#include <vector>

#include "jit/compile/value_ranges.h"

namespace kiln {
namespace {

class DemandSearch {
 public:
  DemandSearch(Grade grade, LoweredPlan* plan)
      : grade_(grade),
        plan_(plan),
        is_rounded_(plan->values.size()),
        is_of_halves_(plan->values.size()),
        is_of_inputs_(plan->values.size()),
        may_be_masked_(plan->values.size()),
        demands_(plan->values.size()) {}

  // From the outputs back, so that readers come before what they read.
  void Run() && {
    FindRounded();
    FindMasked();
    for (const PlanOutput& output : plan_->outputs) {
      Demand(output.value.index,
             IsHalf(output.dtype) ? Exactness::kHalf : Exactness::kUlps);
    }
    for (auto node = plan_->nodes.rbegin(); node != plan_->nodes.rend();
         ++node) {
      for (size_t i = 0; i < node->operands.size(); ++i) {
        const int value = ValueOf(node->operands[i]);
        if (value >= 0) Demand(value, DemandOf(*node, i));
      }
    }
    for (size_t i = 0; i < demands_.size(); ++i) {
      plan_->values[i].exactness = ExactnessOf(static_cast<int>(i));
    }
  }

 private:
  // Values made of products of operands with 11 bits, and where all outputs
  // have 16 bits those that PyTorch rounds to as many, each of them, since all
  // that they are made of has these.
  void FindRounded() {
    const bool leaves_halves = std::all_of(
        plan_->outputs.begin(), plan_->outputs.end(),
        [](const PlanOutput& output) { return IsHalf(output.dtype); });
    for (size_t i = 0; i < is_of_halves_.size(); ++i) {
      const LoweredValue& value = plan_->values[i];
      is_of_halves_[i] =
          leaves_halves && value.producer < 0 && IsHalf(value.desc.dtype);
    }
    for (const Node& node : plan_->nodes) {
      const bool is_rounded = HasRoundedProducts(node);
      const bool is_of_halves = IsOfHalves(node);
      for (const int result : node.results) {
        is_rounded_[result] = is_rounded;
        is_of_halves_[result] = is_of_halves;
      }
    }
  }

  bool HasFewBits(int value) const {
    return is_rounded_[value] || is_of_halves_[value];
  }

  bool HasRoundedProducts(const Node& node) const {
    if (grade_ != Grade::kTf32) return false;
    return node.IsConvolution() ||
           std::any_of(node.operands.begin(), node.operands.end(),
                       [&](const Operand& operand) {
                         const int value = ValueOf(operand);
                         return value >= 0 && is_rounded_[value];
                       });
  }

  // A cast to f32 ends it.
  bool IsOfHalves(const Node& node) const {
    if (node.op == OpKind::kCast &&
        !IsHalf(plan_->values[node.results[0]].desc.dtype)) {
      return false;
    }
    return node.ReadsOnly([&](int value) { return is_of_halves_[value]; });
  }

  // What pointwise ops make of nothing but the plan's inputs, and values of
  // whose powers it may make all but one nothing: their sum's logarithm is then
  // an element, and may be small.
  void FindMasked() {
    std::fill_n(is_of_inputs_.begin(), plan_->num_inputs, true);
    for (const Node& node : plan_->nodes) {
      if (node.kind != NodeKind::kPointwise || node.IsNorm()) continue;
      bool all = true, any = false, is_masked = false;
      for (const Operand& operand : node.operands) {
        const int value = ValueOf(operand);
        if (value < 0) continue;
        all &= is_of_inputs_[value];
        any |= is_of_inputs_[value];
        is_masked |= may_be_masked_[value];
      }
      is_of_inputs_[node.results[0]] = all;
      may_be_masked_[node.results[0]] = is_masked || (any && MayMask(node.op));
    }
  }
  static bool MayMask(OpKind op) {
    return op == OpKind::kAdd || op == OpKind::kSub || op == OpKind::kMinimum ||
           op == OpKind::kMaximum;
  }

  static bool IsHalf(DataType type) { return type != DataType::kF32; }

  // What meets both demands. Beside 1, relative to 16 bits and between
  // neighbours different errors count, so that of two together all do.
  static Exactness Both(Exactness a, Exactness b) {
    if (a == b) return a;
    const bool are_ordered = std::max(a, b) != Exactness::kHalf &&
                             std::max(a, b) != Exactness::kSmooth;
    return are_ordered ? std::min(a, b) : Exactness::kUlps;
  }

  void Demand(int value, Exactness exactness) {
    std::optional<Exactness>& known = demands_[value];
    known = known ? Both(*known, exactness) : exactness;
  }

  // Of a value whose readers have made their demands.
  Exactness ExactnessOf(int value) const {
    const Exactness demand = demands_[value].value_or(Exactness::kUlps);
    const bool is_exact = demand == Exactness::kTf32 && !HasFewBits(value);
    return is_exact ? Exactness::kBesideOne : demand;
  }

  // What `node` asks of operand number `i`.
  Exactness DemandOf(const Node& node, size_t i) const {
    if (SumsPowers(node)) {
      return may_be_masked_[ValueOf(node.operands[0])] ? Exactness::kUlps
                                                       : Exactness::kTf32;
    }
    if (node.IsMove()) return ExactnessOf(node.results[0]);
    // An error of x is as large in a share, relative to that.
    const bool is_power = node.op == OpKind::kSoftmax && i == 0;
    if (is_power && HasFewBits(ValueOf(node.operands[i]))) {
      return Exactness::kBesideOne;
    }
    if (IsMultipliedAsHalf(node, i)) return Exactness::kHalf;
    Exactness strictest = ExactnessOf(node.results[0]);
    for (const int result : node.results) {
      strictest = Both(strictest, ExactnessOf(result));
    }
    const bool is_half = strictest == Exactness::kHalf;
    if (is_half && TakesMean(node, i)) return Exactness::kSmooth;
    const bool may_enlarge =
        is_half ? MayEnlargeShare(node) : MayEnlarge(node, i);
    return may_enlarge ? Exactness::kUlps : strictest;
  }

  // Whether operand `i` is what a group norm subtracts the mean from, that mean
  // or the deviation.
  static bool TakesMean(const Node& node, size_t i) {
    return node.op == OpKind::kGroupNorm && node.kind == NodeKind::kPointwise &&
           i < 3;
  }

  // Whether the operand is one that a convolution takes rounded.
  bool IsMultipliedAsHalf(const Node& node, size_t i) const {
    return node.IsConvolution() && i < 2 &&
           IsHalf(plan_->values[ValueOf(node.operands[i])].desc.dtype);
  }

  // Whether an error relative to an operand may be larger relative to the
  // result.
  bool MayEnlargeShare(const Node& node) const {
    switch (node.op) {
      case OpKind::kMul:
      case OpKind::kDiv:
      case OpKind::kMinimum:
      case OpKind::kMaximum:
      case OpKind::kRelu:
      case OpKind::kLeakyRelu:
      case OpKind::kClamp:
      case OpKind::kAbs:
      case OpKind::kNeg:
      case OpKind::kMaxPool2d:
      case OpKind::kAmax:
      case OpKind::kAmin:
        return false;
      case OpKind::kCast:
        return !IsReadAsRounded(node.results[0]);
      default:
        return true;
    }
  }

  // Whether what a cast has rounded goes nowhere but, as it is, to an output or
  // a convolution. Else one that is rounded the other way would be as wrong as
  // the rounding.
  bool IsReadAsRounded(int value) const {
    const DataType type = plan_->values[value].desc.dtype;
    return std::all_of(plan_->outputs.begin(), plan_->outputs.end(),
                       [&](const PlanOutput& output) {
                         return output.value.index != value ||
                                output.dtype == type;
                       }) &&
           std::all_of(plan_->nodes.begin(), plan_->nodes.end(),
                       [&](const Node& reader) {
                         if (!reader.Reads(value)) return true;
                         return reader.IsMove()
                                    ? IsReadAsRounded(reader.results[0])
                                    : reader.IsConvolution();
                       });
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
      case OpKind::kGroupNorm:
        return node.kind != NodeKind::kReduce;  // whose results go together
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
  // By value.
  std::vector<bool> is_rounded_, is_of_halves_, is_of_inputs_, may_be_masked_;
  std::vector<std::optional<Exactness>> demands_;
};

}  // namespace

void FindDemands(Grade grade, LoweredPlan* plan) {
  DemandSearch(grade, plan).Run();
}

}  // namespace kiln
