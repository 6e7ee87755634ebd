#include "jit/compile/split_totals.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "jit/plan/op_table.h"

namespace kiln {
namespace {

using Axes = std::vector<int64_t>;

// Of a reduction of the plan, or what softmax takes of rows.
std::optional<Axes> AxesOf(const Node& node) {
  if (node.kind != NodeKind::kReduce) return std::nullopt;
  if (const auto* reduce = std::get_if<ReduceAttributes>(&node.attributes)) {
    return reduce->dim;
  }
  if (const auto* softmax = std::get_if<SoftmaxAttributes>(&node.attributes)) {
    return Axes{softmax->dim};
  }
  return std::nullopt;
}

// Whether what it makes of parts is what it makes of the whole.
bool TakesParts(const Node& node) {
  switch (node.op) {
    case OpKind::kSum:
    case OpKind::kMean:
    case OpKind::kAmax:
    case OpKind::kAmin:
      return node.kind == NodeKind::kReduce;
    default:
      return false;
  }
}

bool AreSomeOf(const Axes& some, const Axes& all) {
  return some.size() < all.size() &&
         std::all_of(some.begin(), some.end(), [&](int64_t axis) {
           return std::find(all.begin(), all.end(), axis) != all.end();
         });
}

const Dims& InputDims(const LoweredPlan& plan, const Node& node) {
  return plan.values[ValueOf(node.operands[0])].desc.dims;
}

// Of the reductions from whose results elements are computed that `total`
// reduces, the axes of one over some of its axes.
std::optional<Axes> RowAxes(const LoweredPlan& plan, const Node& total) {
  if (!TakesParts(total)) return std::nullopt;
  const Axes all = *AxesOf(total);
  std::vector<int> made_of = {ValueOf(total.operands[0])};
  for (size_t i = 0; i < made_of.size(); ++i) {
    const int producer = made_of[i] < 0 ? -1 : plan.values[made_of[i]].producer;
    if (producer < 0) continue;
    const Node& node = plan.nodes[producer];
    const std::optional<Axes> axes = AxesOf(node);
    if (axes && InputDims(plan, node) == InputDims(plan, total) &&
        AreSomeOf(*axes, all)) {
      return axes;
    }
    if (node.kind != NodeKind::kPointwise) continue;
    for (const Operand& operand : node.operands) {
      const int value = ValueOf(operand);
      if (std::find(made_of.begin(), made_of.end(), value) == made_of.end()) {
        made_of.push_back(value);
      }
    }
  }
  return std::nullopt;
}

class TotalSplitting {
 public:
  TotalSplitting(LoweredPlan plan, const std::set<int>& results)
      : plan_(std::move(plan)), results_(results) {}

  LoweredPlan Run() && {
    const LoweredPlan before = plan_;
    plan_.nodes.clear();
    for (const Node& node : before.nodes) {
      if (results_.count(node.results[0]) > 0) {
        Split(node, *RowAxes(before, node));
      } else {
        plan_.AddNode(node);
      }
    }
    return std::move(plan_);
  }

 private:
  void Split(const Node& total, const Axes& rows) {
    Dims dims = InputDims(plan_, total);
    for (const int64_t axis : rows) dims[axis] = 1;
    Node of_rows = total;
    of_rows.results = {plan_.AddLike(total.results[0], "_rows", dims)};
    of_rows.attributes = ReduceAttributes{rows, true};
    const std::string_view op = FindOp(total.op)->name;
    of_rows.text =
        fmt::format("{} = {}({}, dim={}, keepdim=true)", NameOf(of_rows), op,
                    plan_.values[ValueOf(total.operands[0])].name, rows);
    Node rest = total;
    rest.operands[0] = ValueId{of_rows.results[0]};
    rest.text = fmt::format("{} = {}({}, dim={})", NameOf(rest), op,
                            NameOf(of_rows), *AxesOf(total));
    plan_.AddNode(std::move(of_rows));
    plan_.AddNode(std::move(rest));
  }

  const std::string& NameOf(const Node& node) const {
    return plan_.values[node.results[0]].name;
  }

  LoweredPlan plan_;
  const std::set<int>& results_;
};

// The value that holds `total`, taken of each row.
int RowsOf(const LoweredPlan& plan, int total) {
  return ValueOf(plan.nodes[plan.values[total].producer].operands[0]);
}

}  // namespace

LoweredPlan SplitTotals(LoweredPlan plan, const std::set<int>& results) {
  return TotalSplitting(std::move(plan), results).Run();
}

std::set<int> TotalsOfRows(const LoweredPlan& plan) {
  std::set<int> results;
  for (const Node& node : plan.nodes) {
    if (RowAxes(plan, node)) results.insert(node.results[0]);
  }
  return results;
}

std::set<int> TakenInVain(const Schedule& schedule,
                          const std::set<int>& results) {
  const LoweredPlan& plan = schedule.lowered;
  std::set<int> in_vain = results;
  for (const Kernel& kernel : schedule.kernels) {
    if (!kernel.row_work || kernel.row_work->reductions < 2) continue;
    const std::vector<int> nodes = kernel.group.Nodes();
    std::erase_if(in_vain, [&](int total) {
      const int producer = plan.values[RowsOf(plan, total)].producer;
      return std::find(nodes.begin(), nodes.end(), producer) != nodes.end();
    });
  }
  return in_vain;
}

}  // namespace kiln
