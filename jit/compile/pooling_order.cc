#include "jit/compile/pooling_order.h"

#include <algorithm>

#include "jit/compile/commute_pooling.h"
#include "jit/compile/conv_cost.h"
#include "jit/compile/conv_windows.h"
#include "jit/compile/kernel_traffic.h"
#include "jit/compile/lay_results.h"

namespace kiln {
namespace {

// What must be saved, of the convolution that pools: the sums of 24 plans on an
// H200 agreed with the clock but for as much.
constexpr double kLeastSaved = 0.1;

// Of all kernels but those that prepare weights.
double CyclesOf(const Schedule& schedule, const Target& target) {
  int64_t bytes = 0;
  for (const Kernel& kernel : schedule.kernels) {
    if (kernel.conv || !kernel.computes()) continue;
    bytes += BytesRead(schedule, kernel) + BytesWritten(schedule, kernel);
  }
  const int sm_count = std::max(target.sm_count, 1);
  return ConvolutionCycles(schedule, target) +
         static_cast<double>(bytes) / (kMovedBytesPerCycle * sm_count);
}

// Of the convolution that pools in front of its norm.
double PoolingCycles(const Schedule& schedule, const Target& target) {
  double cycles = 0.0;
  for (const Kernel& kernel : schedule.kernels) {
    if (!kernel.conv || kernel.group.early_pooling < 0) continue;
    cycles += ConvCycles(*kernel.conv, kernel.demands, target);
  }
  return cycles;
}

}  // namespace

bool PoolsEarlyInPlace(const Schedule& schedule) {
  return std::none_of(
      schedule.kernels.begin(), schedule.kernels.end(),
      [&](const Kernel& kernel) {
        return kernel.group.anchor >= 0 &&
               IsEarlyPooling(schedule.lowered.nodes[kernel.group.anchor]);
      });
}

bool PoolsWhatTilesShare(const LoweredPlan& plan) {
  return std::any_of(plan.nodes.begin(), plan.nodes.end(),
                     [&](const Node& node) {
                       if (!IsEarlyPooling(node)) return false;
                       const ConvWindows windows = WindowsOf(plan, node);
                       return windows.overlap(0) > 0 || windows.overlap(1) > 0;
                     });
}

bool IsFasterBehind(const Schedule& in_front, const Schedule& behind,
                    const Target& target) {
  return CyclesOf(in_front, target) - CyclesOf(behind, target) >
         kLeastSaved * PoolingCycles(in_front, target);
}

}  // namespace kiln
