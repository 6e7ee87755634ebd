#include "jit/compile/cut_later.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "jit/plan/data_type.h"

namespace kiln {
namespace {

class CuttingLater {
 public:
  explicit CuttingLater(const LoweredPlan& before)
      : before_(before), plan_(before) {
    plan_.nodes.clear();
  }

  LoweredPlan Run() && {
    for (const Node& node : before_.nodes) Take(node);
    while (!cuts_.empty()) CutRounded(cuts_.begin()->first);
    return std::move(plan_);
  }

 private:
  const Dims& DimsOf(int value) const { return plan_.values[value].desc.dims; }

  void Take(const Node& node) {
    if (node.kind == NodeKind::kCut) {
      cuts_.emplace(node.results[0], node);
      return;
    }
    if (const std::optional<size_t> cut = CutOperandOf(node)) {
      return Exchange(node, *cut);
    }
    for (const Operand& operand : node.operands) {
      if (IsCut(operand)) Cut(ValueOf(operand));
    }
    plan_.AddNode(node);
  }

  bool IsCut(const Operand& operand) const {
    return cuts_.count(ValueOf(operand)) > 0;
  }

  // The operand of `node` that is cut, if nobody else needs it and the node
  // nothing else of an image.
  std::optional<size_t> CutOperandOf(const Node& node) const {
    if (node.kind != NodeKind::kPointwise || node.results.size() > 1) return {};
    const auto cut =
        std::find_if(node.operands.begin(), node.operands.end(),
                     [&](const Operand& operand) { return IsCut(operand); });
    if (cut == node.operands.end()) return {};
    const int value = ValueOf(*cut);
    if (before_.CountUses(value) > 1) return {};
    if (DimsOf(node.results[0]) != DimsOf(value)) return {};
    for (auto other = node.operands.begin(); other != node.operands.end();
         ++other) {
      if (other != cut && !IsOfChannel(node, *other)) return {};
    }
    return cut - node.operands.begin();
  }

  bool IsOfChannel(const Node& node, const Operand& operand) const {
    const int value = ValueOf(operand);
    if (value < 0 || node.op == OpKind::kBatchNorm) return true;
    const Dims4 dims = AlignDims(DimsOf(value));
    return dims[0] * dims[2] * dims[3] == 1;
  }

  // Computes the node of what is cut, and cuts its result.
  void Exchange(Node node, size_t operand) {
    Node cut =
        std::move(cuts_.extract(ValueOf(node.operands[operand])).mapped());
    const int whole = ValueOf(cut.operands[0]);
    const int result =
        std::exchange(node.results[0],
                      plan_.AddLike(node.results[0], "_wide", DimsOf(whole)));
    node.operands[operand] = ValueId{whole};
    cut.operands[0] = ValueId{node.results[0]};
    cut.results[0] = result;
    plan_.AddNode(std::move(node));
    cuts_.emplace(result, std::move(cut));
  }

  void Cut(int value) {
    const Node cut = std::move(cuts_.extract(value).mapped());
    plan_.AddMove(NodeKind::kCut, ValueOf(cut.operands[0]), value,
                  cut.attributes);
    plan_.nodes.back().across = cut.across;
  }

  // Of what nobody reads.
  void CutRounded(int value) {
    const std::optional<DataType> type = OnlyTypeOf(value);
    if (type && plan_.values[value].desc.dtype == DataType::kF32 &&
        ElementSize(*type) == 2) {
      Operand& whole = cuts_.at(value).operands[0];
      whole = ValueId{plan_.AddCast(ValueOf(whole), *type)};
      plan_.values[value].desc.dtype = *type;
    }
    Cut(value);
  }

  // Of outputs.
  std::optional<DataType> OnlyTypeOf(int value) const {
    std::optional<DataType> type;
    for (const PlanOutput& output : plan_.outputs) {
      if (output.value.index != value) continue;
      if (type && *type != output.dtype) return {};
      type = output.dtype;
    }
    return type;
  }

  const LoweredPlan& before_;
  LoweredPlan plan_;
  std::map<int, Node> cuts_;  // by result, that are still to be made
};

}  // namespace

LoweredPlan CutLater(const LoweredPlan& plan) {
  return CuttingLater(plan).Run();
}

}  // namespace kiln
