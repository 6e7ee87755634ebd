#ifndef KILN_JIT_COMPILE_COMMUTE_POOLING_H_
#define KILN_JIT_COMPILE_COMMUTE_POOLING_H_

#include "jit/compile/lowered_plan.h"

namespace kiln {

// Moves max_pool2d in front of a normalisation and the monotone ops behind it.
// For f monotone on a window, rising or falling, the largest f(x) is the
// larger of f(largest x) and f(smallest x), exactly, because rounding is
// monotone too. So pooling needs no statistics, only both extremes of what
// they are taken of, and f is computed on the pooled elements alone. A NaN in
// a window makes both extremes NaN, as max_pool2d of PyTorch does.
//
//   z = group_norm(y)              m = max_pool2d(y), of largest and smallest
//   s = mul(z, scale)        ->    a, b = mul(group_norm(m.largest), scale), ..
//   p = max_pool2d(s)              p = maximum(a, b)
//
// The pooling node of the result has two results, the largest and the
// smallest elements of the windows. Returns the plan itself where nothing can
// be moved.
LoweredPlan CommutePooling(const LoweredPlan& plan);

// Whether a node is a pooling of both extremes.
bool IsExtremes(const Node& node);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_COMMUTE_POOLING_H_
