#ifndef KILN_JIT_COMPILE_JOIN_IMAGES_H_
#define KILN_JIT_COMPILE_JOIN_IMAGES_H_

#include <set>

#include "jit/compile/lowered_plan.h"
#include "jit/compile/tuning.h"

namespace kiln {

// Lays the images of convolutions of one tap side by side, where an image has
// so odd a number of pixels that none of its rows could begin where an access
// of 8 bytes may (reshape_images.h), as one of 7 x 7:
//
//   y = conv2d(x, w)   ->   j = join(x)        [N, C, H, W] to [1, C, N, H W]
//                           y = conv2d(j, w)
//
// The kernel of kernel_sources/join.cu moves each element once. The images of a
// result lie apart again, as its kernel stores them (conv_rounded.cuh), unless
// such convolutions alone read it, or pointwise ops that are the same for all
// images: these values are of joined images, too.
//
// Where that is predicted to pay, which takes some 10^9 multiply-adds, or as
// `use` says. `apart`: results of convolutions whose images stay as they are.
LoweredPlan JoinImages(LoweredPlan plan, ImageUse use,
                       const std::set<int>& apart);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_JOIN_IMAGES_H_
