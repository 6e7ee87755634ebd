#include "jit/compile/mosaic_blocks.h"

#include <algorithm>
#include <variant>

#include "jit/compile/rounding.h"

namespace kiln {
namespace {

constexpr int64_t kMostChannels = 16;
// That a block keeps: eight of each thread, so that all are on their way
// together.
constexpr int64_t kMostElements = 2048;

}  // namespace

MosaicBlocks MosaicBlocksOf(const LoweredPlan& plan, const Node& node) {
  const Dims& from = plan.values[ValueOf(node.operands[0])].desc.dims;
  const Dims& to = plan.values[node.results[0]].desc.dims;
  const bool cuts = node.kind == NodeKind::kCut;
  const Dims& images = cuts ? to : from;
  const Dims& whole = cuts ? from : to;
  const auto& windows = std::get<PoolAttributes>(node.attributes);
  MosaicBlocks blocks;
  blocks.across = (whole[3] - windows.kernel_size[1]) / windows.stride[1] + 1;
  const int64_t of_channel = cuts ? blocks.across * images[2] * images[3]
                                  : windows.stride[0] * (whole[3] + images[3]);
  blocks.channels = kMostChannels;
  while (blocks.channels > 1 && blocks.channels * of_channel > kMostElements) {
    blocks.channels /= 2;
  }
  blocks.channels = std::min(blocks.channels, images[1]);
  blocks.count =
      CeilDiv(images[0], blocks.across) * CeilDiv(images[1], blocks.channels);
  return blocks;
}

}  // namespace kiln
