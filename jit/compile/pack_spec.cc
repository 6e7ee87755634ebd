#include "jit/compile/pack_spec.h"

#include <algorithm>

#include "jit/compile/conv_constants.h"
#include "jit/compile/rounding.h"
#include "jit/compile/spec_text.h"

namespace kiln {
namespace {

constexpr int kPackThreads = 256;
constexpr int64_t kMaxPackBlocks = 1024;

}  // namespace

KernelSpec MakePackSpec(const Schedule& schedule, const Kernel& kernel) {
  ConvGeometry geometry = *kernel.conv;
  geometry.sum_blocks = 1;  // whoever reads it, weights lie the same way
  const Node& node = schedule.lowered.nodes[kernel.group.anchor];
  KernelTensors tensors(schedule, kernel);
  tensors.Read(ValueOf(node.operands[1]), "weight");
  tensors.Add({"packed", "unsigned", true, *kernel.packed});
  KernelSpec spec;
  spec.formula = {"packs the weights of " + node.text};
  const bool has_groups = geometry.has_groups();
  spec.source_file = has_groups ? "pack_halves.cu" : "pack_weights.cu";
  spec.index = "int";
  spec.constants = TileConstants(geometry);
  const std::vector<std::string> more =
      has_groups ? StageConstants(geometry) : PatchConstants(geometry);
  spec.constants.insert(spec.constants.end(), more.begin(), more.end());
  spec.constants.push_back(BoolText(
      "kTransposed",
      geometry.problem.transposed && !geometry.problem.has_channel_phases()));
  spec.tensors = tensors.list();
  spec.has_element = false;
  EntrySpec entry{"kiln_pack_weights",
                  has_groups ? "kiln::PackHalves" : "kiln::PackWeights",
                  kPackThreads};
  const int64_t threads =
      has_groups ? geometry.scale_count() * 32
                 : geometry.packed_bytes() / 4 / (2 * geometry.weight_parts());
  const int64_t blocks = CeilDiv(threads, kPackThreads);
  entry.grid[0] = static_cast<uint32_t>(
      has_groups ? blocks : std::min(blocks, kMaxPackBlocks));
  spec.entries.push_back(std::move(entry));
  return spec;
}

}  // namespace kiln
