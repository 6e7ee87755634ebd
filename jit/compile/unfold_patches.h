#ifndef KILN_JIT_COMPILE_UNFOLD_PATCHES_H_
#define KILN_JIT_COMPILE_UNFOLD_PATCHES_H_

#include "jit/compile/lowered_plan.h"

namespace kiln {

// Makes a convolution whose filter steps over the image by its own size, as the
// first of a vision transformer does, one of 1 x 1 pixels, whose channels are
// the elements of a patch. Where filters are so large that tiles of pixels
// would hold few of them, and where images have so few channels that units of
// shared memory would be filled in part, if moving the patches costs less:
//
//   y = conv2d(x, w, stride=16)   ->   u = unfold(x, kernel_size=16)
//                                      y = conv2d(u, w as [O, C 16 16, 1, 1])
//
// for w: [O, C, 16, 16]. The kernel of kernel_sources/unfold.cu writes as many
// elements as it reads. Weights that a plan computes stay as they are.
// `takes_small`: also filters of fewer than 64 pixels, where that has been
// found to pay on an H100.
LoweredPlan UnfoldPatches(LoweredPlan plan, bool takes_small);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_UNFOLD_PATCHES_H_
