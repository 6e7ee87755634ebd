#include "jit/compile/lent_output.h"

#include <algorithm>
#include <vector>

namespace kiln {
namespace {

bool Has(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Nodes that a kernel applies to elements of its domain, each of which it reads
// from memory before it writes it.
const std::vector<int>& ElementwiseNodes(const KernelGroup& group) {
  static const std::vector<int> kNone;
  if (!group.finish.empty()) return group.finish;
  return group.anchor < 0 ? group.epilogue : kNone;
}

// Whether other nodes of the kernel read the value too: a convolution reads
// windows of it, while other blocks may write.
bool IsReadOtherwise(const Schedule& schedule, int reader, int value) {
  const KernelGroup& group = schedule.kernels[reader].group;
  const std::vector<int> nodes = group.Nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](int node) {
    if (Has(ElementwiseNodes(group), node)) return false;
    const bool is_made_here =
        Has(nodes, schedule.lowered.values[value].producer);
    return !is_made_here && schedule.lowered.nodes[node].Reads(value);
  });
}

bool MakesOnly(const Schedule& schedule, int reader, int node) {
  for (size_t i = 0; i < schedule.kernels.size(); ++i) {
    if (static_cast<int>(i) == reader) continue;
    if (Has(schedule.kernels[i].group.Nodes(), node)) return false;
  }
  return Has(ElementwiseNodes(schedule.kernels[reader].group), node);
}

bool IsLent(const Schedule& schedule, const Place& place) {
  return std::any_of(
      schedule.homes.begin(), schedule.homes.end(),
      [&](const std::optional<Place>& home) { return home && *home == place; });
}

}  // namespace

std::optional<Place> OutputLentTo(const Schedule& schedule, int value,
                                  int reader) {
  const LoweredPlan& plan = schedule.lowered;
  const Dims& dims = plan.values[value].desc.dims;
  if (schedule.kernels[reader].group.domain != dims ||
      IsReadOtherwise(schedule, reader, value)) {
    return std::nullopt;
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const int output = plan.outputs[i].value.index;
    const Place place{plan.num_inputs + static_cast<int>(i), 0,
                      plan.outputs[i].dtype};
    if (place.dtype == plan.values[value].desc.dtype &&
        plan.values[output].desc.dims == dims &&
        MakesOnly(schedule, reader, plan.values[output].producer) &&
        !IsLent(schedule, place)) {
      return place;
    }
  }
  return std::nullopt;
}

}  // namespace kiln
