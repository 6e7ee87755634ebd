#include "jit/compile/turn_around.h"

#include <algorithm>
#include <set>

namespace kiln {
namespace {

// Values that a kernel reads from memory, but for parameters, and those that it
// makes.
struct Values {
  std::set<int> read;
  std::set<int> made;

  bool Has(int value) const {
    return read.count(value) + made.count(value) > 0;
  }
};

bool IsParameter(const Plan& plan, int value) {
  return value < static_cast<int>(plan.inputs.size()) &&
         plan.inputs[value].role == InputRole::kParameter;
}

Values ValuesOf(const Plan& plan, const Schedule& schedule,
                const Kernel& kernel) {
  Values values{ValuesRead(schedule.lowered, kernel.group), {}};
  std::erase_if(values.read,
                [&](int value) { return IsParameter(plan, value); });
  for (const int index : kernel.group.Nodes()) {
    const Node& node = schedule.lowered.nodes[index];
    values.made.insert(node.results.begin(), node.results.end());
  }
  return values;
}

bool KnowsOneWay(const Schedule& schedule, const Kernel& kernel) {
  const int anchor = kernel.group.anchor;
  return anchor >= 0 && schedule.lowered.nodes[anchor].IsConvolution();
}

}  // namespace

void TurnAround(const Plan& plan, Schedule* schedule) {
  Values before;
  bool went_backwards = false;
  for (Kernel& kernel : schedule->kernels) {
    if (kernel.prepares) continue;
    Values values = ValuesOf(plan, *schedule, kernel);
    const bool meets =
        std::any_of(values.read.begin(), values.read.end(),
                    [&](int value) { return before.Has(value); });
    kernel.backwards =
        meets && !went_backwards && !KnowsOneWay(*schedule, kernel);
    went_backwards = kernel.backwards;
    before = std::move(values);
  }
}

}  // namespace kiln
