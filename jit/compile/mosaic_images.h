#ifndef KILN_JIT_COMPILE_MOSAIC_IMAGES_H_
#define KILN_JIT_COMPILE_MOSAIC_IMAGES_H_

#include "jit/artifact/target.h"
#include "jit/compile/lowered_plan.h"
#include "jit/compile/tuning.h"

namespace kiln {

// Makes one image of several small ones side by side, with so many zeros
// between that no result of a convolution depends on two:
//
//   y = conv2d(x, w)   ->   m = mosaic(x)    [N, C, H, W] to [M, C, H, P S]
//                           t = conv2d(m, w)
//                           y = cut(t)       back to [N, O, H', W']
//
// for N <= M P, and the same of transposed convolutions. Tiles of one image
// have few pixels if that is small, and each of them brings all weights; 512
// channels of 4 x 4 pixels take less than half the time so, of 2 x 2 pixels a
// third. The kernels of kernel_sources/mosaic.cu move each element once.
//
// Where the models predict that it pays, or as `use` says.
LoweredPlan MosaicImages(LoweredPlan plan, Grade grade, const Target& target,
                         ImageUse use);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_MOSAIC_IMAGES_H_
