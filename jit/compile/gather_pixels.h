#ifndef KILN_JIT_COMPILE_GATHER_PIXELS_H_
#define KILN_JIT_COMPILE_GATHER_PIXELS_H_

#include "jit/compile/lowered_plan.h"

namespace kiln {

// Makes a convolution that has a single pixel of each image for its result, as
// a linear layer written so, one of 1 x 1 pixels of one image, for a tile of
// pixels would hold one of each:
//
//   y = conv2d(x, w)   ->   g = turn(x)       [N, C, H, W] to [1, C H W, P, Q]
//                           t = conv2d(g, w as [O, C H W, 1, 1])
//                           y = turn(t)       [1, O, P, Q] to [N, O, 1, 1]
//
// for N <= P x Q; behind the last image stand zeros. The kernel of
// kernel_sources/turn.cu moves each element once. Where nothing stands there,
// pointwise ops and further layers go on with what is gathered, and what
// several read is turned once: a perceptron is turned in front and behind. Not
// where a kernel takes rows as they lie (linear_tile.h).
// Where H x W > 1, weights that a plan computes stay as they are.
//
// And a transposed convolution of single pixels, as a generator has for its
// first layer, whose filter of K x L is as large as the result:
//
//   y = conv_transpose2d(x, w, b)   ->
//                           g = turn(x)       [N, C, 1, 1] to [1, C, P, Q]
//                           t = conv_transpose2d(g, w as [C, O K L, 1, 1])
//                           u = turn(t)       [1, O K L, P, Q] to [N, O, K, L]
//                           y = add(u, b)     if there is a bias
LoweredPlan GatherPixels(LoweredPlan plan);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_GATHER_PIXELS_H_
