#include "jit/compile/bound_spec.h"

#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "jit/compile/conv_constants.h"
#include "jit/compile/result_bound.h"
#include "jit/compile/spec_text.h"

namespace kiln {
namespace {

constexpr int kThreads = 1024;

// Writes Spec::Bound, step upon step.
class BoundWriter {
 public:
  BoundWriter(const Schedule& schedule, KernelTensors* tensors)
      : schedule_(schedule), tensors_(*tensors) {}

  void Write(const BoundStep& step) {
    const std::string number = TextOf(step.number);
    switch (step.kind) {
      case BoundKind::kMultiply:
        return Line("bound.Multiply({});", number);
      case BoundKind::kAdd:
        return Line("bound.Add({});", number);
      case BoundKind::kAtMost:
        return Line("bound.AtMost({});", number);
      case BoundKind::kAtLeast:
        return Line("bound.AtLeast({});", number);
      case BoundKind::kGate:
        return Line("bound.Gate({});", number);
      case BoundKind::kLeak:
        return Line("bound.Leak({});", number);
      case BoundKind::kFold:
        return Line("bound.Fold({});", number);
      case BoundKind::kWithin:
        return WriteRange(NodeOf(step));
      case BoundKind::kBatchNorm:
        return WriteBatchNorm(NodeOf(step));
    }
  }

  std::vector<std::string> Function() const {
    std::vector<std::string> lines = {
        "static __device__ kiln::ResultBound Bound(const Tensors& t,",
        "                                          int channel,",
        "                                          kiln::ResultBound bound) {"};
    lines.insert(lines.end(), lines_.begin(), lines_.end());
    lines.insert(lines.end(), {"  return bound;", "}"});
    return lines;
  }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    lines_.push_back("  " + fmt::format(format, std::forward<Args>(args)...));
  }

  const Node& NodeOf(const BoundStep& step) const {
    return schedule_.lowered.nodes[step.node];
  }

  std::string TextOf(const Operand& operand, const char* otherwise = "") {
    if (const float* const constant = std::get_if<float>(&operand)) {
      return FloatLiteral(*constant);
    }
    const int value = ValueOf(operand);
    if (value < 0) return otherwise;
    return fmt::format("kiln::Load({}, channel)", tensors_.Read(value));
  }

  void WriteRange(const Node& node) {
    const ValueRange& range = schedule_.lowered.values[node.results[0]].range;
    Line("bound = kiln::ResultBound::Within({}, {});", FloatLiteral(range.low),
         FloatLiteral(range.high));
  }

  void WriteBatchNorm(const Node& node) {
    const auto& norm = std::get<BatchNormAttributes>(node.attributes);
    Line("bound.Add(-{});", TextOf(node.operands[1]));
    Line("bound.Multiply(kiln::ReciprocalStd({}, {}));",
         TextOf(node.operands[2]), FloatLiteral(norm.eps));
    Line("bound.Multiply({});", TextOf(node.operands[3], "1.0f"));
    Line("bound.Add({});", TextOf(node.operands[4], "0.0f"));
  }

  const Schedule& schedule_;
  KernelTensors& tensors_;
  std::vector<std::string> lines_;
};

}  // namespace

KernelSpec MakeBoundSpec(const Schedule& schedule, const Kernel& kernel) {
  const Node& node = schedule.lowered.nodes[kernel.group.anchor];
  const ConvProblem& problem = kernel.conv->problem;
  KernelTensors tensors(schedule, kernel);
  tensors.Read(ValueOf(node.operands[1]), "weight");
  BoundWriter writer(schedule, &tensors);
  const std::vector<BoundStep> steps =
      BoundSteps(schedule.lowered, node, kernel.group.epilogue).value();
  for (const BoundStep& step : steps) writer.Write(step);
  tensors.Add({"bounds", "float", true, *kernel.bounds});
  KernelSpec spec;
  spec.formula = {"bounds what is laid down of " + node.text};
  spec.source_file = "bound_results.cu";
  spec.index = "int";
  spec.constants = {
      IntsText("kInputs", problem.input[1], "kOutputs", problem.output[1]),
      IntText("kThreads", kThreads)};
  spec.tensors = tensors.list();
  spec.members = writer.Function();
  spec.has_element = false;
  spec.entries.push_back(
      {"kiln_bound_results", "kiln::BoundResults", kThreads});
  return spec;
}

}  // namespace kiln
