#include "jit/compile/split_softmax.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// Elements that a thread has, at least: images of 14 rows of 14 would be a
// block each, most of whose time is its beginning and its end.
constexpr int64_t kFewestElements = 5;

bool IsSoftmax(const Node& node) {
  return node.kind == NodeKind::kPointwise && node.op == OpKind::kSoftmax;
}

class Splitting {
 public:
  Splitting(LoweredPlan plan, const std::set<int>& results)
      : plan_(std::move(plan)), results_(results) {}

  LoweredPlan Run() && {
    std::vector<Node> nodes = std::move(plan_.nodes);
    plan_.nodes.clear();
    for (const Node& node : nodes) {
      if (IsSoftmax(node) && IsToBeSplit(node)) {
        statistics_.insert(ValueOf(node.operands[1]));
      }
    }
    for (Node& node : nodes) {
      if (node.kind == NodeKind::kReduce &&
          statistics_.count(node.results[0]) > 0) {
        continue;
      }
      if (IsSoftmax(node) && IsToBeSplit(node)) {
        Split(node);
      } else {
        plan_.AddNode(std::move(node));
      }
    }
    return std::move(plan_);
  }

 private:
  bool IsToBeSplit(const Node& softmax) const {
    return results_.count(softmax.results[0]) > 0;
  }

  void Split(const Node& softmax) {
    const int input = ValueOf(softmax.operands[0]);
    const int largest = ValueOf(softmax.operands[1]);
    const int sum = ValueOf(softmax.operands[2]);
    const int result = softmax.results[0];
    const Dims dims = plan_.values[result].desc.dims;
    const int below = plan_.AddLike(result, "_below", dims);
    const int power = plan_.AddLike(result, "_power", dims);
    const int64_t dim = std::get<SoftmaxAttributes>(softmax.attributes).dim;
    Reduce(OpKind::kAmax, "amax", input, largest, dim);
    Compute(OpKind::kSub, "sub", {input, largest}, below);
    Compute(OpKind::kExp, "exp", {below}, power);
    Reduce(OpKind::kSum, "sum", power, sum, dim);
    Compute(OpKind::kDiv, "div", {power, sum}, result);
  }

  void Reduce(OpKind op, const char* name, int from, int to, int64_t dim) {
    plan_.AddNode({NodeKind::kReduce,
                   op,
                   ReduceAttributes{{dim}, true},
                   {ValueId{from}},
                   {to},
                   fmt::format("{} = {}({}, dim={}, keepdim=true)", NameOf(to),
                               name, NameOf(from), dim)});
  }

  void Compute(OpKind op, const char* name, const std::vector<int>& from,
               int to) {
    Node node{NodeKind::kPointwise, op, {}, {}, {to}, ""};
    std::vector<std::string> names;
    for (const int value : from) {
      node.operands.push_back(ValueId{value});
      names.push_back(NameOf(value));
    }
    node.text =
        fmt::format("{} = {}({})", NameOf(to), name, fmt::join(names, ", "));
    plan_.AddNode(std::move(node));
  }

  const std::string& NameOf(int value) const {
    return plan_.values[value].name;
  }

  LoweredPlan plan_;
  const std::set<int>& results_;
  std::set<int> statistics_;  // the first result of each that is left out
};

// Whether a kernel's threads hold enough of the rows in registers, through
// several reductions.
bool AreHeld(const Kernel& kernel) {
  const std::optional<RowGeometry>& rows = kernel.rows;
  return rows && rows->is_warp_chain() && kernel.row_work->reductions > 1 &&
         CeilDiv(rows->length, rows->lanes) * rows->vector >= kFewestElements;
}

}  // namespace

LoweredPlan SplitSoftmax(LoweredPlan plan, const std::set<int>& results) {
  return Splitting(std::move(plan), results).Run();
}

std::set<int> SoftmaxOfColumns(const Schedule& schedule) {
  const std::vector<Node>& nodes = schedule.lowered.nodes;
  std::set<int> statistics;  // of which rows are side by side
  for (const Kernel& kernel : schedule.kernels) {
    if (kernel.group.anchor < 0 || !kernel.row_work ||
        kernel.row_work->pitch == 1) {
      continue;
    }
    const Node& anchor = nodes[kernel.group.anchor];
    if (anchor.kind == NodeKind::kReduce && anchor.op == OpKind::kSoftmax) {
      statistics.insert(anchor.results[0]);
    }
  }
  std::set<int> results;
  for (const Node& node : nodes) {
    if (IsSoftmax(node) && statistics.count(ValueOf(node.operands[1])) > 0) {
      results.insert(node.results[0]);
    }
  }
  return results;
}

std::set<int> SplitInVain(const Schedule& schedule,
                          const std::set<int>& results) {
  std::set<int> in_vain = results;
  for (const Kernel& kernel : schedule.kernels) {
    if (!AreHeld(kernel)) continue;
    for (const int node : kernel.group.Nodes()) {
      for (const int made : schedule.lowered.nodes[node].results) {
        in_vain.erase(made);
      }
    }
  }
  return in_vain;
}

}  // namespace kiln
