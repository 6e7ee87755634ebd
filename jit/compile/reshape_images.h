#ifndef KILN_JIT_COMPILE_RESHAPE_IMAGES_H_
#define KILN_JIT_COMPILE_RESHAPE_IMAGES_H_

#include "jit/compile/lowered_plan.h"

namespace kiln {

// Makes images of H x W pixels in memory order such of H' x W' = H x W, whose
// rows begin where an access of 16 bytes may, or else one of 8, so that
// convolutions of one tap can take pixels as they lie (conv_lines.cuh). Where
// that is of use: images of 16-bit numbers that only such convolutions
// multiply; and no node can tell: what follows are batch norms, reductions of
// whole images and pointwise ops of whole images.
LoweredPlan ReshapeImages(LoweredPlan plan);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_RESHAPE_IMAGES_H_
