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

// For a kMosaic or kCut.
MosaicBlocks MosaicBlocksOf(const LoweredPlan& plan, const Node& node);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_MOSAIC_BLOCKS_H_
