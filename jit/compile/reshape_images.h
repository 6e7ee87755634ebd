#ifndef KILN_JIT_COMPILE_RESHAPE_IMAGES_H_
#define KILN_JIT_COMPILE_RESHAPE_IMAGES_H_

#include "jit/compile/lowered_plan.h"

namespace kiln {

// Makes images of H x W pixels in memory order such of H' x W' = H x W, whose
// rows begin where an access of 16 bytes may, where a convolution of one tap
// could then take pixels as they lie (conv_lines.cuh) and no node of the plan
// can tell: not where others than such convolutions, norms, reductions over
// channels or whole images and pointwise ops of whole images read them. Of
// 16-bit numbers, and where nothing but convolutions reads images from memory.
LoweredPlan ReshapeImages(LoweredPlan plan);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_RESHAPE_IMAGES_H_
