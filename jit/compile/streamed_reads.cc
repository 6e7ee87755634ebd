#include "jit/compile/streamed_reads.h"

#include <algorithm>
#include <set>

namespace kiln {
namespace {

// A third of what the L2 caches of an A100 or H100 hold.
constexpr int64_t kStreamedBytes = int64_t{16} << 20;

// Whether what a warp loads at once shares few lines with what others do:
// single elements of short columns share most (49 of f32 took 30 us, streamed
// 33; of 1225 and more a tenth less).
bool ReadsWholeLines(const ReduceGeometry& geometry) {
  constexpr int64_t kFewestSingles = 1024;
  return geometry.vector > 1 ||
         (!geometry.rows() && geometry.view.run() >= kFewestSingles);
}

int64_t BytesOf(const TensorDesc& desc) {
  return NumElements(desc.dims) * ElementSize(desc.dtype);
}

bool IsLarge(const TensorDesc& desc) { return BytesOf(desc) >= kStreamedBytes; }

// Whether `kernel` reads `value`, under whatever name, or copies it: a kernel
// that only copies has no nodes.
bool ReadsOrCopies(const Schedule& schedule, const Kernel& kernel, int value) {
  if (kernel.group.IsEmpty() &&
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

// Whether each of `values` is large and `kernel` alone reads it.
bool AreStreamed(const Schedule& schedule, const Kernel& kernel,
                 const std::set<int>& values) {
  return std::all_of(values.begin(), values.end(), [&](int value) {
    return IsLarge(schedule.lowered.values[value].desc) &&
           std::none_of(schedule.kernels.begin(), schedule.kernels.end(),
                        [&](const Kernel& other) {
                          return &other != &kernel &&
                                 ReadsOrCopies(schedule, other, value);
                        });
  });
}

// Whether a reduction gains by it. Not where far more is read than caches hold,
// unless it is columns of 16 bits: on an H200 two tensors of 50 to 200 MB
// together take 3 to 14 % less so, 1 GB, of one or two, 4 to 6 % more, and 537
// MB of such columns 140 us instead of 168.
bool StreamsReduced(const Schedule& schedule, const Kernel& kernel) {
  constexpr int64_t kMostBytes = int64_t{256} << 20;
  const LoweredPlan& plan = schedule.lowered;
  const std::set<int> values = WholeValuesReduced(plan, kernel.group);
  int64_t bytes = 0;
  bool are_halves = true;
  for (const int value : values) {
    const TensorDesc& desc = plan.values[value].desc;
    bytes += BytesOf(desc);
    are_halves &= ElementSize(desc.dtype) == 2;
  }
  const bool are_columns = !kernel.reduce->rows() && are_halves;
  return !values.empty() && (are_columns || bytes <= kMostBytes) &&
         AreStreamed(schedule, kernel, values);
}

// The same of a single one: beside others it loses.
bool IsStreamed(const Schedule& schedule, const Kernel& kernel,
                const std::set<int>& values) {
  return values.size() == 1 && AreStreamed(schedule, kernel, values);
}

// Whether nothing as large as the rows is stored.
bool EndsInNumbersOfRows(const LoweredPlan& plan, const Kernel& kernel) {
  if (!kernel.rows->is_chain()) return kernel.group.tail >= 0;
  return std::none_of(kernel.stores.begin(), kernel.stores.end(),
                      [&](const Store& store) {
                        return AlignDims(plan.values[store.value].desc.dims) ==
                               AlignDims(kernel.group.domain);
                      });
}

}  // namespace

void StreamReads(Schedule* schedule) {
  const LoweredPlan& plan = schedule->lowered;
  for (Kernel& kernel : schedule->kernels) {
    const KernelGroup& group = kernel.group;
    if (kernel.reduce.has_value() && ReadsWholeLines(*kernel.reduce)) {
      kernel.reduce->streams = StreamsReduced(*schedule, kernel);
    }
    if (!kernel.rows.has_value() || !EndsInNumbersOfRows(plan, kernel))
      continue;
    const std::set<int> values = WholeValuesRead(plan, group, group.domain);
    if (kernel.rows->is_chain()) {
      kernel.rows->streams =
          !values.empty() && AreStreamed(*schedule, kernel, values);
      continue;
    }
    const bool is_read_once =
        group.prologue.empty() || kernel.rows->reads_again;
    if (!kernel.rows->copies || !is_read_once) continue;
    kernel.rows->streams = IsStreamed(*schedule, kernel, values);
  }
}

}  // namespace kiln
