#ifndef KILN_JIT_COMPILE_FOLD_SIGNALS_H_
#define KILN_JIT_COMPILE_FOLD_SIGNALS_H_

#include "jit/compile/lowered_plan.h"

namespace kiln {

// Makes signals, images of one row, images of many rows, in memory as before:
// blocks then have tiles one below the other, where they would have one each.
// Convolutions read past the ends of such rows (Node::wraps_rows). Where no
// node can tell: convolutions that leave a signal as long as it is, but for
// those that have a filter for each channel or whose kernels read operands as
// they lie (direct_conv.h), unless these have one tap; group and batch norms,
// reductions of whole signals, and pointwise ops.
LoweredPlan FoldSignals(LoweredPlan plan);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_FOLD_SIGNALS_H_
