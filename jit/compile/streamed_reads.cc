#include "jit/compile/streamed_reads.h"

#include <algorithm>
#include <set>

namespace kiln {
namespace {

// A third of what the L2 caches of an A100 or H100 hold.
constexpr int64_t kStreamedBytes = int64_t{16} << 20;

bool IsLarge(const TensorDesc& desc) {
  return NumElements(desc.dims) * ElementSize(desc.dtype) >= kStreamedBytes;
}

// Whether `kernel` reads `value`, under whatever name, or copies it: a kernel
// that only copies has no nodes.
bool ReadsOrCopies(const Schedule& schedule, const Kernel& kernel, int value) {
  if (kernel.group.Nodes().empty() &&
      std::any_of(kernel.stores.begin(), kernel.stores.end(),
                  [&](const Store& store) { return store.value == value; })) {
    return true;
  }
  const std::optional<Place>& home = schedule.homes[value];
  const std::set<int> read = ValuesRead(schedule.lowered, kernel.group);
  return std::any_of(read.begin(), read.end(), [&](int other) {
    return other == value ||
           (home.has_value() && schedule.homes[other] == home);
  });
}

// Whether the one value among `values` is large and `kernel` alone reads it.
bool IsStreamed(const Schedule& schedule, const Kernel& kernel,
                const std::set<int>& values) {
  if (values.size() != 1) return false;
  const int value = *values.begin();
  if (!IsLarge(schedule.lowered.values[value].desc)) return false;
  return std::none_of(schedule.kernels.begin(), schedule.kernels.end(),
                      [&](const Kernel& other) {
                        return &other != &kernel &&
                               ReadsOrCopies(schedule, other, value);
                      });
}

}  // namespace

void StreamReads(Schedule* schedule) {
  const LoweredPlan& plan = schedule->lowered;
  for (Kernel& kernel : schedule->kernels) {
    const KernelGroup& group = kernel.group;
    if (kernel.reduce.has_value() && kernel.reduce->vector > 1) {
      kernel.reduce->streams =
          IsStreamed(*schedule, kernel, WholeValuesReduced(plan, group));
    }
    if (!kernel.rows.has_value() || group.tail < 0) continue;
    const bool is_read_once =
        group.prologue.empty() || kernel.rows->reads_again;
    if (!kernel.rows->copies || !is_read_once) continue;
    kernel.rows->streams = IsStreamed(
        *schedule, kernel, WholeValuesRead(plan, group, group.domain));
  }
}

}  // namespace kiln
