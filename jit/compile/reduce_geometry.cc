#include "jit/compile/reduce_geometry.h"

#include <algorithm>
#include <vector>

namespace kiln {
namespace {

// Fewer steps for each thread than this are not worth a second kernel.
constexpr int64_t kMinStepsPerSplitThread = 16;
constexpr int64_t kMaxSplits = 1024;
constexpr int kWarp = 32;
// From here on a whole block works on one output: eight steps a thread.
constexpr int kWideBlock = 512;
constexpr int64_t kMinStepsOfWideBlock = 4096;

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

ReduceGeometry ChooseReduceGeometry(const ReduceView& view, int sm_count) {
  ReduceGeometry geometry{view};
  const int64_t steps = view.steps();
  if (view.reduces_innermost() && steps >= kMinStepsOfWideBlock) {
    geometry.threads = geometry.lanes = kWideBlock;
  } else if (view.reduces_innermost() && steps >= kWarp) {
    geometry.lanes = kWarp;
  }

  const int64_t wanted = 2 * std::max(sm_count, 1);
  const int64_t for_device =
      (wanted + geometry.blocks() - 1) / geometry.blocks();
  const int64_t for_steps = steps / (geometry.lanes * kMinStepsPerSplitThread);
  geometry.splits = static_cast<int>(
      std::clamp<int64_t>(std::min(for_device, for_steps), 1, kMaxSplits));
  return geometry;
}

}  // namespace kiln
