#include "jit/compile/reduce_geometry.h"

#include <algorithm>
#include <vector>

namespace kiln {
namespace {

// Four f32 are an access of 16 bytes; eight f16 would be, but registers hold
// f32, and several accesses are in flight anyway.
constexpr int kVector = 4;
// Fewer steps for each thread than this are not worth a second kernel.
constexpr int64_t kMinStepsPerSplitThread = 16;
constexpr int64_t kMaxSplits = 1024;
constexpr int kWarp = 32;
constexpr int kMaxLanesOfRow = 512;
// Eight threads side by side still read whole lines of 128 bytes.
constexpr int kMaxLanesOfColumn = 32;
// Accesses that a thread has in flight. Rows have so many lanes, up to this
// limit, that none loads twice: with fewer, each strides through more memory
// than streams well.
constexpr int64_t kAtOnce = 4;
constexpr int kMaxLanesOfManyRows = 256;
// Threads on a multiprocessor that keep enough loads in flight.
constexpr int64_t kThreadsPerSm = 2048;

std::vector<bool> ReducedAxes(const Node& node, size_t rank) {
  std::vector<bool> reduced(rank, false);
  if (const auto* softmax = std::get_if<SoftmaxAttributes>(&node.attributes)) {
    if (rank > 0) reduced[softmax->dim] = true;
    return reduced;
  }
  const auto& reduce = std::get<ReduceAttributes>(node.attributes);
  if (reduce.dim.empty()) reduced.assign(rank, true);
  for (const int64_t dim : reduce.dim) {
    if (static_cast<size_t>(dim) < rank) reduced[dim] = true;
  }
  return reduced;
}

}  // namespace

ReduceView ViewOf(const Node& node, const Dims& dims) {
  ReduceView view;
  if (node.op == OpKind::kGroupNorm) {
    const auto& norm = std::get<GroupNormAttributes>(node.attributes);
    view.kept0 = dims[0] * norm.num_groups;
    view.reduced0 = NumElements(dims) / view.kept0;
    return view;
  }
  int64_t* const extents[] = {&view.kept0, &view.reduced0, &view.kept1,
                              &view.reduced1, &view.kept2};
  const std::vector<bool> reduced = ReducedAxes(node, dims.size());
  size_t place = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    const bool at_reduced = place % 2 == 1;
    if (reduced[i] != at_reduced) ++place;
    *extents[place] *= dims[i];
  }
  return view;
}

namespace {

// Lanes that leave each thread `min_steps` steps or more, at most `limit`.
int LanesFor(int64_t steps, int64_t min_steps, int limit) {
  int lanes = 1;
  while (lanes < limit && lanes * 2 * min_steps <= steps) lanes *= 2;
  return lanes;
}

int LanesOfRow(const ReduceGeometry& geometry, int64_t wanted_threads) {
  const int64_t steps = geometry.view.steps();
  // Two accesses a thread.
  const int64_t min_steps = geometry.vector > 1 ? 2 * geometry.vector : 4;
  const int most = LanesFor(steps, min_steps, kMaxLanesOfRow);
  int lanes =
      std::max(std::min(most, kWarp),
               LanesFor(steps, kAtOnce * geometry.vector, kMaxLanesOfManyRows));
  while (lanes < most && geometry.view.outputs() * lanes < wanted_threads) {
    lanes *= 2;
  }
  return lanes;
}

int LanesOfColumn(const ReduceGeometry& geometry, int64_t wanted_threads) {
  const int most = LanesFor(geometry.view.steps(), kAtOnce, kMaxLanesOfColumn);
  const int64_t columns = geometry.view.outputs() / geometry.vector;
  int lanes = 1;
  while (lanes < most && columns * lanes < wanted_threads) lanes *= 2;
  return lanes;
}

}  // namespace

ReduceGeometry ChooseReduceGeometry(const ReduceView& view, int sm_count,
                                    bool by_elements) {
  ReduceGeometry geometry{view};
  if (!by_elements && view.run() % kVector == 0) geometry.vector = kVector;
  const int64_t multiprocessors = std::max(sm_count, 1);
  const int64_t wanted_threads = multiprocessors * kThreadsPerSm;
  geometry.lanes = geometry.rows() ? LanesOfRow(geometry, wanted_threads)
                                   : LanesOfColumn(geometry, wanted_threads);
  geometry.threads = std::max(geometry.threads, geometry.lanes);

  const int64_t wanted = wanted_threads / geometry.threads;
  const int64_t for_device =
      (wanted + geometry.blocks() - 1) / geometry.blocks();
  const int64_t for_steps =
      view.steps() / (geometry.lanes * kMinStepsPerSplitThread);
  geometry.splits = static_cast<int>(
      std::clamp<int64_t>(std::min(for_device, for_steps), 1, kMaxSplits));
  return geometry;
}

}  // namespace kiln
