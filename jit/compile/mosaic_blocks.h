#ifndef KILN_JIT_COMPILE_MOSAIC_BLOCKS_H_
#define KILN_JIT_COMPILE_MOSAIC_BLOCKS_H_

#include <cstdint>

#include "jit/compile/lowered_plan.h"

namespace kiln {

// What the blocks of kernel_sources/mosaic.cu have: some channels of a row of
// images.
struct MosaicBlocks {
  int64_t across = 1;    // images in a row
  int64_t channels = 1;  // of a block
  int64_t count = 1;
};

// Elements of a channel of a row of images that a block keeps in shared memory
// for a kMosaic or a kCut, and the most that it can: with as many to keep banks
// apart, 48 KB.
int64_t KeptOfChannel(NodeKind kind, const PoolAttributes& windows,
                      int64_t whole_width);
inline constexpr int64_t kMostKeptOfChannel = 6144;

// For a kMosaic or kCut, of whose channels blocks can keep one.
MosaicBlocks MosaicBlocksOf(const LoweredPlan& plan, const Node& node);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_MOSAIC_BLOCKS_H_
