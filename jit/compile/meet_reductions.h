#ifndef KILN_JIT_COMPILE_MEET_REDUCTIONS_H_
#define KILN_JIT_COMPILE_MEET_REDUCTIONS_H_

#include "jit/compile/lowered_plan.h"

namespace kiln {

// Moves a reduction in front of the convolution or pooling that stands between
// it and the first of the same value over the same axes, so that one kernel can
// take both in a pass, whatever a plan computes of the first before it comes to
// the second:
//
//   m = mean(x, dim=1)              m = mean(x, dim=1)
//   c = conv2d(m, w)        ->      a = amax(x, dim=1)
//   a = amax(x, dim=1)              c = conv2d(m, w)
LoweredPlan MeetReductions(LoweredPlan plan);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_MEET_REDUCTIONS_H_
