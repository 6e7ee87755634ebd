#include "jit/compile/launch_overlap.h"

#include <algorithm>

#include "jit/compile/compute_capability.h"

namespace kiln {
namespace {

// Of a multiprocessor's blocks; of convolutions on tensor cores without what
// follows in their kernel.
int64_t ResidentSharedBytes(const Schedule& schedule, const Kernel& kernel) {
  if (kernel.correlation) {
    return kResidentCorrelators * CorrelatorBytes(kernel.conv->problem);
  }
  if (!kernel.computes()) return 0;
  if (kernel.conv) {
    return kernel.conv->shared_bytes() *
           std::max(kernel.conv->resident_blocks, 1);
  }
  if (kernel.rows) return kernel.rows->dynamic_shared_bytes;
  if (kernel.group.anchor < 0) return 0;
  const auto& direct = schedule.lowered.nodes[kernel.group.anchor].direct;
  return direct ? direct->shared_bytes * direct->min_blocks : 0;
}

// The same of what its last launch has.
int64_t LastSharedBytes(const Schedule& schedule, const Kernel& kernel) {
  return kernel.correlation ? CorrelatedStatesBytes(kernel.conv->problem)
                            : ResidentSharedBytes(schedule, kernel);
}

bool MustBeResident(const Kernel& kernel) {
  if (!kernel.computes()) return false;
  if (kernel.conv) return kernel.conv->holds_images() && !kernel.conv->in_turns;
  return kernel.rows && kernel.rows->keeper == RowKeeper::kTeam &&
         kernel.rows->resident;
}

bool HasWindows(const Schedule& schedule, const Kernel& kernel) {
  if (kernel.group.anchor < 0 || !kernel.computes()) return false;
  const Node& anchor = schedule.lowered.nodes[kernel.group.anchor];
  return anchor.IsConvolution() || anchor.kind == NodeKind::kPool2d;
}

bool Makes(const Kernel& kernel, int value) {
  return std::any_of(kernel.stores.begin(), kernel.stores.end(),
                     [&](const Store& store) { return store.value == value; });
}

// Whether what `kernel` reads first is there before the one before it ends.
bool FetchesEarly(const Schedule& schedule, const Kernel& before,
                  const Kernel& kernel) {
  if (!kernel.conv || !kernel.computes() || kernel.correlation ||
      !kernel.conv->has_groups() || !kernel.group.finish.empty()) {
    return false;
  }
  const Node& node = schedule.lowered.nodes[kernel.group.anchor];
  return !Makes(before, ValueOf(node.operands[0])) && before.computes();
}

}  // namespace

void OverlapLaunches(const Target& target, Schedule* schedule) {
  if (ComputeCapability(target) < 90) return;
  const Kernel* before = nullptr;
  for (Kernel& kernel : schedule->kernels) {
    if (kernel.prepares) continue;
    const bool lacks_cache =
        before != nullptr && HasWindows(*schedule, kernel) &&
        ShareOfShared(LastSharedBytes(*schedule, *before)) >
            ShareOfShared(ResidentSharedBytes(*schedule, kernel));
    kernel.overlaps = !MustBeResident(kernel) && !lacks_cache;
    kernel.fetches_early = kernel.overlaps && before != nullptr &&
                           FetchesEarly(*schedule, *before, kernel);
    before = &kernel;
  }
}

}  // namespace kiln
