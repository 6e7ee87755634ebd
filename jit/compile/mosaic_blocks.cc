#include "jit/compile/mosaic_blocks.h"

#include <algorithm>
#include <numeric>

#include "jit/compile/rounding.h"

namespace kiln {
namespace {

constexpr int64_t kMostChannels = 16;
// That a block goes through, of more channels than one: eight of each thread.
constexpr int64_t kMostElements = 2048;

}  // namespace

int MosaicBlocks::VectorOf(int64_t run, int64_t most) {
  return static_cast<int>(std::gcd(run, most));
}

MosaicBlocks MosaicBlocksOf(const LoweredPlan& plan, const Node& node) {
  const Dims& from = plan.values[ValueOf(node.operands[0])].desc.dims;
  const Dims& to = plan.values[node.results[0]].desc.dims;
  const bool cuts = node.kind == NodeKind::kCut;
  const Dims& images = cuts ? to : from;
  const Dims& whole = cuts ? from : to;
  const int64_t of_channel = whole[2] * whole[3];
  MosaicBlocks blocks;
  blocks.channels = kMostChannels;
  while (blocks.channels > 1 && blocks.channels * of_channel > kMostElements) {
    blocks.channels /= 2;
  }
  blocks.channels = std::min(blocks.channels, images[1]);
  blocks.count = whole[0] * CeilDiv(images[1], blocks.channels);
  blocks.of_image =
      std::gcd(blocks.channels, images[1]) * images[2] * images[3];
  blocks.of_whole = cuts ? of_channel : whole[3];
  return blocks;
}

}  // namespace kiln
