#include "jit/compile/mosaic_blocks.h"

#include <algorithm>
#include <numeric>
#include <variant>

#include "jit/compile/rounding.h"

namespace kiln {
namespace {

constexpr int64_t kMostChannels = 16;
// That a block goes through, of more channels than one: eight of each thread.
constexpr int64_t kMostElements = 2048;

int64_t ImagesAcross(const PoolAttributes& windows, int64_t whole_width) {
  return (whole_width - windows.kernel_size[1]) / windows.stride[1] + 1;
}

}  // namespace

int MosaicBlocks::VectorOf(int64_t run, int64_t most) {
  return static_cast<int>(std::gcd(run, most));
}

int64_t ElementsOfChannel(NodeKind kind, const PoolAttributes& windows,
                          int64_t whole_width) {
  const int64_t rows =
      kind == NodeKind::kCut ? windows.kernel_size[0] : windows.stride[0];
  return rows * whole_width;
}

MosaicBlocks MosaicBlocksOf(const LoweredPlan& plan, const Node& node) {
  const Dims& from = plan.values[ValueOf(node.operands[0])].desc.dims;
  const Dims& to = plan.values[node.results[0]].desc.dims;
  const bool cuts = node.kind == NodeKind::kCut;
  const Dims& images = cuts ? to : from;
  const int64_t whole_width = (cuts ? from : to)[3];
  const auto& windows = std::get<PoolAttributes>(node.attributes);
  const int64_t of_channel = ElementsOfChannel(node.kind, windows, whole_width);
  MosaicBlocks blocks;
  blocks.across = ImagesAcross(windows, whole_width);
  blocks.channels = kMostChannels;
  while (blocks.channels > 1 && blocks.channels * of_channel > kMostElements) {
    blocks.channels /= 2;
  }
  blocks.channels = std::min(blocks.channels, images[1]);
  blocks.count =
      CeilDiv(images[0], blocks.across) * CeilDiv(images[1], blocks.channels);
  blocks.of_image =
      std::gcd(blocks.channels, images[1]) * images[2] * images[3];
  blocks.of_whole = whole_width;
  return blocks;
}

}  // namespace kiln
