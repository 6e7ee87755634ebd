#ifndef KILN_TESTS_CONV_SHAPE_PLANS_H_
#define KILN_TESTS_CONV_SHAPE_PLANS_H_

#include <vector>

#include "tests/shape_plans.h"

namespace kiln {

// Convolutions for the set `tails` of shape_sets.h, at the edges of what their
// kernels choose by: reductions over images, images that share a block, chunks
// of many channels.
std::vector<NamedPlan> ConvolutionTails();

// Of these: filters of f32 of so many taps that sums of a chunk leave the
// tensor cores in parts (ConvGeometry::chains), of shapes for which cuDNN's
// sums are exact.
std::vector<NamedPlan> LongSums();

}  // namespace kiln

#endif  // KILN_TESTS_CONV_SHAPE_PLANS_H_
