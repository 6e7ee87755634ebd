#ifndef KILN_JIT_COMPILE_DIRECT_CONV_H_
#define KILN_JIT_COMPILE_DIRECT_CONV_H_

#include "jit/artifact/target.h"
#include "jit/compile/lowered_plan.h"
#include "jit/plan/plan.h"

namespace kiln {

// Gives convolutions that kernels of their own do faster than those which take
// any (Node::direct) a tile: of few results head_tile.h, narrow_conv.h and
// narrow_windows.h, of single pixels dense_tile.h and linear_tile.h, of few
// channels stem_tile.h.
// `linear`: the rank of linear layers' ways (Tuning::linear), of which tiles
// leave `spare_registers` to what follows.
LoweredPlan DirectConvolutions(LoweredPlan plan, Grade grade,
                               const Target& target, int linear,
                               int spare_registers);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_DIRECT_CONV_H_
