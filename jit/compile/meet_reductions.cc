#include "jit/compile/meet_reductions.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

namespace kiln {
namespace {

// Whether both are reductions that a plan has, of the same elements to the same
// place.
bool Meet(const Node& a, const Node& b) {
  const auto* first = std::get_if<ReduceAttributes>(&a.attributes);
  const auto* second = std::get_if<ReduceAttributes>(&b.attributes);
  return a.kind == NodeKind::kReduce && b.kind == NodeKind::kReduce &&
         first != nullptr && second != nullptr && *first == *second &&
         ValueOf(a.operands[0]) == ValueOf(b.operands[0]);
}

// Whether kernels that read their rows once do not compute it beside others.
bool EndsAPass(const Node& node) {
  return node.IsConvolution() || node.kind == NodeKind::kPool2d;
}

}  // namespace

LoweredPlan MeetReductions(LoweredPlan plan) {
  std::vector<Node>& nodes = plan.nodes;
  for (auto later = nodes.begin(); later != nodes.end(); ++later) {
    const auto first =
        std::find_if(nodes.begin(), later,
                     [&](const Node& node) { return Meet(node, *later); });
    const auto between = std::find_if(first, later, EndsAPass);
    if (between != later) std::rotate(between, later, later + 1);
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const int result : nodes[i].results) {
      plan.values[result].producer = static_cast<int>(i);
    }
  }
  return plan;
}

}  // namespace kiln
