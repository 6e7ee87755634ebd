#include "jit/compile/depthwise_choice.h"

#include <set>
#include <variant>
#include <vector>

#include "jit/compile/compute_capability.h"

namespace kiln {
namespace {

// The plan's inputs that these nodes read.
int64_t CountInputs(const LoweredPlan& plan, const std::vector<int>& nodes) {
  std::set<int> values;
  for (const int node : nodes) {
    for (const Operand& operand : plan.nodes[node].operands) {
      const int value = ValueOf(operand);
      if (value >= 0 && plan.values[value].producer < 0) values.insert(value);
    }
  }
  return static_cast<int64_t>(values.size());
}

DepthwiseWork WorkOf(const LoweredPlan& plan, const KernelGroup& group,
                     const Target& target) {
  const Node& conv = plan.nodes[group.anchor];
  const TensorDesc& input = plan.values[ValueOf(conv.operands[0])].desc;
  const TensorDesc& weight = plan.values[ValueOf(conv.operands[1])].desc;
  const TensorDesc& output = plan.values[conv.results[0]].desc;
  return {std::get<ConvAttributes>(conv.attributes),
          input.dims,
          weight.dims,
          output.dims,
          SizeBytes(input) + SizeBytes(output),
          SizeBytes(input) / NumElements(input.dims),
          CountInputs(plan, group.epilogue),
          ComputeCapability(target) >= 80};
}

}  // namespace

std::optional<DepthwiseTile> DepthwiseTileOf(const LoweredPlan& plan,
                                             const KernelGroup& group,
                                             const Target& target, Room room) {
  if (room == Room::kPlain) return std::nullopt;
  // Of such rows depthwise_conv2d.cu knows nothing.
  if (plan.nodes[group.anchor].wraps_rows) return std::nullopt;
  std::optional<DepthwiseTile> tile =
      ChooseDepthwiseTile(WorkOf(plan, group, target), target.sm_count);
  if (!tile || room == Room::kTight) return tile;
  if (tile->walks && room == Room::kAmple) {
    tile->min_blocks = 0;
    return tile;
  }
  return DepthwiseTile{1, tile->vector, tile->vector, tile->holds_filter,
                       tile->row_taps};
}

}  // namespace kiln
