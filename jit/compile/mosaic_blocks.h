#ifndef KILN_JIT_COMPILE_MOSAIC_BLOCKS_H_
#define KILN_JIT_COMPILE_MOSAIC_BLOCKS_H_

#include <cstdint>

#include "jit/compile/lowered_plan.h"

namespace kiln {

// What the blocks of kernel_sources/mosaic.cu have: some channels of a whole of
// several images.
struct MosaicBlocks {
  int64_t channels = 1;  // of a block
  int64_t count = 1;
  int64_t of_image = 1;  // elements that all blocks have multiples of,
  int64_t of_whole = 1;  // side by side

  // So many neighbours, a power of two up to `most`, are read or written at
  // once, of images or of the whole.
  int ImageVector(int64_t most) const { return VectorOf(of_image, most); }
  int WholeVector(int64_t most) const { return VectorOf(of_whole, most); }

 private:
  static int VectorOf(int64_t run, int64_t most);
};

// The most elements of a channel of a whole, which blocks of a kCut keep in
// shared memory: 24 KB.
inline constexpr int64_t kMostOfChannel = 6144;

// For a kMosaic or kCut, of whose channels blocks can keep one.
MosaicBlocks MosaicBlocksOf(const LoweredPlan& plan, const Node& node);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_MOSAIC_BLOCKS_H_
