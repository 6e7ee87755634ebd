#include "jit/compile/head_tile.h"

#include <algorithm>
#include <set>
#include <variant>
#include <vector>

#include "jit/compile/compute_capability.h"
#include "jit/compile/direct_cost.h"
#include "jit/compile/part_columns.h"
#include "jit/compile/reshape_images.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

constexpr int kNeededCapability = 90;  // no other has been timed
constexpr int64_t kUnit = 8;           // numbers of an access
constexpr int64_t kAccessBytes = 16;
constexpr int64_t kChunk = 16;     // channels of a product
constexpr int64_t kMostRows = 16;  // of a product: results of a column
constexpr int64_t kVector = 4;
constexpr int64_t kWarp = 32;
constexpr int64_t kWarps = 8;         // of a block
constexpr int64_t kBlocksAtOnce = 2;  // of a multiprocessor
constexpr int64_t kMostSharedBytes = 113 * 1024;
constexpr int64_t kStages = 3;  // of chunks, in shared memory
constexpr int kWidthStep = 16;
constexpr int kMostWidth = 128;
// Where others are as fast (docs/kernel-notes/other-kernels.md): fewer
// channels of the input, also times results, and fewer pixels.
constexpr int64_t kFewestChannels = 16;
constexpr int64_t kFewestChannelsOfAll = 48;
constexpr int64_t kFewestPixels = 448;  // of a multiprocessor
constexpr int64_t kMostTiles = int64_t{1} << 30;
// What a tile takes besides what it brings, in units.
constexpr int64_t kUnitsOfTile = 128;

struct HeadWork {
  Dims4 input;
  Dims4 output;
  Pair kernel;
  ConvAttributes conv;

  int64_t rows() const { return output[1] * kernel[1]; }
  int64_t chunks() const { return CeilDiv(input[1], kChunk); }
  int64_t reach(size_t axis) const {
    return (kernel[axis] - 1) * conv.dilation[axis];
  }
};

// As HeadTile of head_conv2d.cu.
struct Tiling {
  int64_t units;  // of a row
  int64_t patch_rows;
  int64_t tiles;
  int64_t shared_bytes;

  Tiling(const HeadWork& work, const HeadTile& tile) {
    const int64_t padding = work.conv.padding[1];
    const int64_t needed =
        RoundUp(padding, kUnit) - padding + tile.width + work.reach(1);
    units = RoundUp(needed, 2 * kUnit) / kUnit;
    patch_rows = kWarps + work.reach(0);
    tiles = work.output[0] * CeilDiv(work.output[2], kWarps) *
            CeilDiv(work.output[3], int64_t{tile.width});
    const int64_t of_channel = (patch_rows * units) | 1;
    const int64_t weights = work.chunks() * work.kernel[0] * kWarp;
    const int64_t sums = kWarps * work.rows() * units * kUnit;
    shared_bytes =
        kAccessBytes * (kStages * kChunk * of_channel + weights) + 4 * sums;
  }
};

// The width for which least is brought.
std::optional<DirectTile> TileOf(const HeadWork& work, const Target& target) {
  const int64_t sm_count = MultiprocessorsOf(target);
  const int64_t most_shared =
      std::min(kMostSharedBytes, MaxSharedBytes(target));
  std::optional<DirectTile> best;
  int64_t fewest = 0;
  for (int width = kWidthStep; width <= kMostWidth; width += kWidthStep) {
    const HeadTile part = {width};
    const Tiling tiling(work, part);
    if (tiling.shared_bytes > most_shared || tiling.tiles > kMostTiles) {
      continue;
    }
    DirectTile tile;
    tile.threads = static_cast<int>(kWarps * kWarp);
    tile.vector = static_cast<int>(kVector);
    tile.min_blocks = static_cast<int>(kBlocksAtOnce);
    tile.blocks = std::min(tiling.tiles, kBlocksAtOnce * sm_count);
    tile.shared_bytes = tiling.shared_bytes;
    tile.part = part;
    const int64_t brought =
        CeilDiv(tiling.tiles, tile.blocks) *
        (tiling.units * tiling.patch_rows * work.chunks() + kUnitsOfTile);
    if (best && brought >= fewest) continue;
    fewest = brought;
    best = tile;
  }
  return best;
}

// Whether it reads what ops make of nothing but inputs of the plan: others do
// that as they bring it.
bool ReadsOpsOfInputs(const LoweredPlan& plan, const Node& conv) {
  std::vector<int> values = {ValueOf(conv.operands[0])};
  std::set<int> seen = {values[0]};
  while (!values.empty()) {
    const int producer = plan.values[values.back()].producer;
    values.pop_back();
    if (producer < 0) continue;
    const Node& node = plan.nodes[producer];
    if (node.kind != NodeKind::kPointwise) return false;
    for (const Operand& operand : node.operands) {
      const int value = ValueOf(operand);
      if (value >= 0 && seen.insert(value).second) values.push_back(value);
    }
  }
  return plan.values[ValueOf(conv.operands[0])].producer >= 0;
}

// Of signals others make images (fold_signals.h).
bool IsHead(const HeadWork& work) {
  return work.conv.groups == 1 && work.conv.stride == Pair{1, 1} &&
         work.kernel != Pair{1, 1} && work.output[2] > 1 &&
         work.rows() <= kMostRows && work.kernel[1] < kFewestColumnsApart &&
         HasSmallSteps(work.conv) && work.input[3] % kUnit == 0 &&
         work.output[3] % kVector == 0;
}

bool IsFaster(const HeadWork& work, int64_t sm_count) {
  const int64_t channels = work.input[1];
  return channels >= kFewestChannels &&
         channels * work.output[1] >= kFewestChannelsOfAll &&
         work.output[0] * work.output[2] * work.output[3] >=
             kFewestPixels * sm_count;
}

}  // namespace

std::optional<DirectTile> HeadTileOf(const LoweredPlan& plan, const Node& conv,
                                     const Target& target) {
  if (ComputeCapability(target) < kNeededCapability) return std::nullopt;
  const TensorDesc& input = plan.values[ValueOf(conv.operands[0])].desc;
  const TensorDesc& filter = plan.values[ValueOf(conv.operands[1])].desc;
  const HeadWork work = {AlignDims(input.dims),
                         AlignDims(plan.values[conv.results[0]].desc.dims),
                         {filter.dims[2], filter.dims[3]},
                         std::get<ConvAttributes>(conv.attributes)};
  const int64_t sm_count = MultiprocessorsOf(target);
  if (input.dtype != filter.dtype || ElementSize(input.dtype) != 2 ||
      !IsHead(work) || !IsFaster(work, sm_count)) {
    return std::nullopt;
  }
  if (IsReducedBehind(plan, conv) || ReadsOpsOfInputs(plan, conv)) {
    return std::nullopt;
  }
  return TileOf(work, target);
}

}  // namespace kiln
