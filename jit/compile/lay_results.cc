#include "jit/compile/lay_results.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "jit/compile/conv_cost.h"
#include "jit/compile/conv_problem.h"
#include "jit/compile/reshape_images.h"
#include "jit/compile/result_bound.h"

namespace kiln {
namespace {

class Laying {
 public:
  Laying(const Plan& plan, const Schedule& schedule)
      : plan_(plan), schedule_(schedule) {}

  LaidValues Run() const {
    LaidValues values;
    for (const Kernel& kernel : schedule_.kernels) {
      if (!MayLayResults(kernel)) continue;
      values[ResultOf(kernel)] = NodeAt(kernel.group.anchor).image;
    }
    return values;
  }

 private:
  const LoweredPlan& lowered() const { return schedule_.lowered; }
  const Node& NodeAt(int index) const { return lowered().nodes[index]; }

  int InputOf(const Kernel& kernel) const {
    return ValueOf(NodeAt(kernel.group.anchor).operands[0]);
  }
  static int LastOf(const KernelGroup& group) {
    return group.epilogue.empty() ? group.anchor : group.epilogue.back();
  }
  int ResultOf(const Kernel& kernel) const {
    return NodeAt(LastOf(kernel.group)).results[0];
  }

  bool MayLayResults(const Kernel& kernel) const {
    return kernel.ReadsPacked() && MayLayLines(kernel.conv->problem) &&
           IsAlone(kernel) && !kernel.conv->problem.transposed &&
           LeavesOneValue(kernel) && IsOnlyReader(kernel) &&
           AreReadersLaid(kernel) && IsBounded(kernel);
  }

  // Whether nothing follows the elements.
  static bool IsAlone(const Kernel& kernel) {
    const KernelGroup& group = kernel.group;
    return group.tail < 0 && group.finish.empty() && group.shares.empty() &&
           kernel.conv->problem.split_pixels == 0;
  }

  bool LeavesOneValue(const Kernel& kernel) const {
    const int result = ResultOf(kernel);
    return kernel.stores.size() == 1 && kernel.stores[0].value == result &&
           kernel.stores[0].place.slot < 0 &&
           lowered().values[result].desc.dtype == DataType::kF32;
  }

  // Of its input: the kernel that lays it down does so for this one.
  bool IsOnlyReader(const Kernel& kernel) const {
    return std::none_of(schedule_.kernels.begin(), schedule_.kernels.end(),
                        [&](const Kernel& other) {
                          return other.ReadsPacked() &&
                                 other.group.anchor != kernel.group.anchor &&
                                 InputOf(other) == InputOf(kernel);
                        });
  }

  // Whether all that reads the result could take it as lines, of such images.
  bool AreReadersLaid(const Kernel& kernel) const {
    const int result = ResultOf(kernel);
    return std::all_of(
        lowered().nodes.begin(), lowered().nodes.end(), [&](const Node& node) {
          if (!node.Reads(result)) return true;
          if (node.kind != NodeKind::kConv2d) return false;
          for (size_t i = 1; i < node.operands.size(); ++i) {
            if (ValueOf(node.operands[i]) == result) return false;
          }
          return MayLayLines(ConvProblemOf(lowered(), node)) &&
                 MayHaveImage(node, NodeAt(kernel.group.anchor).image);
        });
  }

  bool MayHaveImage(const Node& conv, const std::optional<Pair>& image) const {
    return conv.image == image || !image || CanReshape(lowered(), conv);
  }

  bool IsBounded(const Kernel& kernel) const {
    const Node& conv = NodeAt(kernel.group.anchor);
    if (!IsParameter(ValueOf(conv.operands[1]))) return false;
    const auto steps = BoundSteps(lowered(), conv, kernel.group.epilogue);
    return steps && std::all_of(steps->begin(), steps->end(),
                                [&](const BoundStep& step) {
                                  return IsOfParameters(step);
                                });
  }
  bool IsOfParameters(const BoundStep& step) const {
    if (step.kind != BoundKind::kBatchNorm)
      return IsParameterOrNone(step.number);
    const std::vector<Operand>& operands = NodeAt(step.node).operands;
    return std::all_of(
        operands.begin() + 1, operands.end(),
        [&](const Operand& operand) { return IsParameterOrNone(operand); });
  }
  bool IsParameterOrNone(const Operand& operand) const {
    return ValueOf(operand) < 0 || IsParameter(ValueOf(operand));
  }
  bool IsParameter(int value) const {
    const int viewed = lowered().values[value].view_of;
    const int input = viewed >= 0 ? viewed : value;
    return input < lowered().num_inputs &&
           plan_.inputs[input].role == InputRole::kParameter;
  }

  const Plan& plan_;
  const Schedule& schedule_;
};

bool ReadsAny(const LoweredPlan& plan, const Kernel& kernel,
              const std::set<int>& values) {
  return kernel.computes() && AnyReads(plan, kernel.group.Nodes(), values);
}

bool StoresAny(const Kernel& kernel, const std::set<int>& values) {
  return std::any_of(
      kernel.stores.begin(), kernel.stores.end(),
      [&](const Store& store) { return values.count(store.value) > 0; });
}

// Whether the kernel that lays a convolution's input down is there for it.
bool HasLayer(const Schedule& schedule, const Kernel& conv) {
  return std::any_of(schedule.kernels.begin(), schedule.kernels.end(),
                     [&](const Kernel& kernel) {
                       return kernel.lays() &&
                              kernel.group.anchor == conv.group.anchor;
                     });
}

}  // namespace

LaidValues ResultsToLay(const Plan& plan, const Schedule& schedule) {
  return Laying(plan, schedule).Run();
}

LoweredPlan LayResults(LoweredPlan plan, const LaidValues& values) {
  for (const auto& [value, image] : values) {
    plan.values[value].laid = true;
    for (Node& node : plan.nodes) {
      if (node.Reads(value)) node.image = image;
    }
  }
  return plan;
}

bool AreLaid(const Schedule& schedule, const LaidValues& laid) {
  const LoweredPlan& plan = schedule.lowered;
  std::set<int> values;
  for (const auto& [value, image] : laid) values.insert(value);
  if (!AreImagesSuited(schedule)) return false;
  return std::all_of(
      schedule.kernels.begin(), schedule.kernels.end(),
      [&](const Kernel& kernel) {
        if (StoresAny(kernel, values) &&
            (!kernel.LaysResults() || !HasLayer(schedule, kernel))) {
          return false;
        }
        return !ReadsAny(plan, kernel, values) ||
               (kernel.TakesLaidLines() && kernel.conv->problem.input_is_laid);
      });
}

double ConvolutionCycles(const Schedule& schedule, const Target& target) {
  double cycles = 0.0;
  for (const Kernel& kernel : schedule.kernels) {
    if (!kernel.computes() || !kernel.conv) continue;
    cycles += ConvCycles(*kernel.conv, kernel.demands, target);
  }
  return cycles;
}

}  // namespace kiln
