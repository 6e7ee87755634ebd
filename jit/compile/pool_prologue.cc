#include "jit/compile/pool_prologue.h"

#include <algorithm>
#include <cstdint>
#include <variant>

#include "jit/compile/conv_cost.h"
#include "jit/compile/fusion.h"
#include "jit/compile/op_cost.h"
#include "jit/compile/window_geometry.h"

namespace kiln {
namespace {

// Elements of windows times operations on each: fewer take less than the launch
// of a kernel that computes them once.
constexpr int64_t kFewOperations = int64_t{1} << 22;
constexpr double kLanesPerCycle = 128;  // of a multiprocessor
// Of an element of each tensor but the first, which a pooling loads anyway.
constexpr int64_t kInstructionsOfLoad = 4;
constexpr int64_t kMostInstructionsAhead = 45;

// Whether no two windows read the same element, so that a prologue runs at
// most once on each.
bool HasDisjointWindows(const PoolAttributes& pool) {
  for (size_t i = 0; i < 2; ++i) {
    const int64_t reach = (pool.kernel_size[i] - 1) * pool.dilation[i] + 1;
    if (reach > pool.stride[i]) return false;
  }
  return true;
}

// Rows of a softmax are read once, and kept, by a kernel of their own.
bool HasSoftmax(const LoweredPlan& plan, const std::vector<int>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [&](int node) {
    return plan.nodes[node].op == OpKind::kSoftmax;
  });
}

// Tensors as large as `dims` that the prologue is made of.
int64_t TensorsRead(const LoweredPlan& plan, const std::vector<int>& prologue,
                    const Dims& dims) {
  KernelGroup group;
  group.prologue = prologue;
  return static_cast<int64_t>(WholeValuesRead(plan, group, dims).size());
}

// Elements that pool2d.cu computes on for each output: neighbours of a thread
// have columns in common.
double ElementsOfOutput(const PoolAttributes& pool, const Dims& input,
                        const Dims& output) {
  const int64_t neighbours = std::max(PoolVector(pool, input, output), 1);
  const int64_t columns = (neighbours - 1) * pool.stride[1] +
                          (pool.kernel_size[1] - 1) * pool.dilation[1] + 1;
  const int64_t most = neighbours * pool.kernel_size[1];
  return static_cast<double>(pool.kernel_size[0] * std::min(columns, most)) /
         static_cast<double>(neighbours);
}

}  // namespace

bool PoolTakesPrologue(const LoweredPlan& plan, const Node& anchor,
                       const std::vector<int>& prologue) {
  if (anchor.kind != NodeKind::kPool2d) return false;
  const auto& pool = std::get<PoolAttributes>(anchor.attributes);
  if (HasDisjointWindows(pool)) return true;
  if (HasSoftmax(plan, prologue)) return false;
  const TensorDesc& input = plan.values[ValueOf(anchor.operands[0])].desc;
  const Dims& output = plan.values[anchor.results[0]].desc.dims;
  const int64_t outputs = NumElements(output);
  const int64_t window = pool.kernel_size[0] * pool.kernel_size[1];
  if (outputs * window * static_cast<int64_t>(prologue.size()) <=
      kFewOperations) {
    return true;
  }
  const int64_t instructions =
      InstructionsOf(plan, prologue) +
      kInstructionsOfLoad * (TensorsRead(plan, prologue, input.dims) - 1);
  const double computing = static_cast<double>(outputs) *
                           ElementsOfOutput(pool, input.dims, output) *
                           static_cast<double>(instructions) / kLanesPerCycle;
  const double storing =
      2.0 * static_cast<double>(SizeBytes(input)) / kMovedBytesPerCycle;
  return computing <= storing;
}

bool PoolLoadsAhead(const LoweredPlan& plan, const std::vector<int>& prologue) {
  return InstructionsOf(plan, prologue) <= kMostInstructionsAhead;
}

}  // namespace kiln
