#ifndef KILN_JIT_COMPILE_COMMUTE_POOLING_H_
#define KILN_JIT_COMPILE_COMMUTE_POOLING_H_

#include "jit/compile/lowered_plan.h"

namespace kiln {

// Moves a pooling in front of a normalisation and the ops behind it, which then
// run on pooled elements alone: one pass over a convolution leaves both the
// windows and the statistics of the norm. max_pool2d commutes with monotone
// ops, avg_pool2d with affine ones.
//
// For f rising on a window the largest f(x) is f(largest x), for f falling
// f(smallest x), exactly, because rounding is monotone too. Which it is follows
// for each channel from the signs of the norm's weight and of factors. A NaN
// in a window makes its extreme NaN, as max_pool2d of PyTorch does.
//
//   z = group_norm(y, weight)      m = extreme of windows of y: the largest
//   s = mul(z, scale)        ->        where weight * scale is positive
//   p = max_pool2d(s)              p = mul(group_norm(m), scale)
//
// The pooling's operands behind the first are the signs, a constant and tensors
// that are the same at all pixels of a channel: where their product is negative
// it gives the smallest, else the largest. A mean has the sign 1.
//
// Where a factor that is a tensor is infinite, the mean of a window with
// numbers of both signs or a zero is NaN in PyTorch and infinite here.
//
// Returns the plan itself where nothing can be moved.
LoweredPlan CommutePooling(const LoweredPlan& plan);

// Whether a node is such a pooling.
bool IsEarlyPooling(const Node& node);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_COMMUTE_POOLING_H_
