#ifndef KILN_JIT_COMPILE_NARROW_CONV_H_
#define KILN_JIT_COMPILE_NARROW_CONV_H_

#include "jit/artifact/target.h"
#include "jit/compile/lowered_plan.h"
#include "jit/plan/plan.h"

namespace kiln {

// Gives convolutions with few results a tile of narrow_conv2d.cu, if they have
// windows narrow_windows.cu, or of few single pixels dense.cu (Node::narrow),
// and keeps them from tensor cores, which would have hardly anything to
// multiply while the input is on its way, or multiply zeros: networks whose
// results are images or segments of such end so. Reductions and pooling, which
// tensor cores' kernels would do with results on chip, read them from memory
// then: where such follow, only if results are a small part of what is read
// anyway.
LoweredPlan NarrowConvolutions(LoweredPlan plan, Grade grade,
                               const Target& target);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_NARROW_CONV_H_
