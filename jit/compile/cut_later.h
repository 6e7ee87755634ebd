#ifndef KILN_JIT_COMPILE_CUT_LATER_H_
#define KILN_JIT_COMPILE_CUT_LATER_H_

#include "jit/compile/lowered_plan.h"

namespace kiln {

// Images are cut apart (mosaic_images.h) behind what needs nothing but their
// elements and what belongs to a channel:
//
//   y = relu(cut(t))   ->   y = cut(relu(t))
//
// so that the convolution's kernel computes it, and rounds there what is an
// output of 16 bits: half as much is written and read again. Elements between
// images are computed, too, and not used.
LoweredPlan CutLater(const LoweredPlan& plan);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CUT_LATER_H_
