#ifndef KILN_JIT_COMPILE_VALUE_DEMANDS_H_
#define KILN_JIT_COMPILE_VALUE_DEMANDS_H_

#include "jit/compile/lowered_plan.h"

namespace kiln {

// How exact values have to be. Of a small value errors relative to it count,
// units in its last place; but where all that is made of it ends in a
// logsumexp, only errors beside 1 do: e^(x + d) is e^x to d of itself, however
// small x is, and the logarithm of the sum is wrong by the mean of such d. So
// it is for what reaches a logsumexp of at least two values by way of ops that
// do not enlarge an error.
//
// In the grade tf32 what is made of a convolution of rounded operands is wrong
// by 2^-11 already, and so is in PyTorch what has 16 bits. Where a logsumexp
// takes the mean of such errors, another of that size in front of it adds
// little: its values are kTf32.
//
// An output of 16 bits, and what a convolution takes in 16, is wrong by 2^-12
// of itself or more. So errors relative to it count from some 2^-16 on alone,
// of it and of what reaches it by way of ops that keep relative errors: kHalf.
// Not so what the plan rounds on its way to more exact results: an error that
// turns a rounding the other way is as large as the rounding.
//
// A norm by its operand's own mean may subtract nearly all of a value, and of
// its error what neighbours share; what they do not, such as a rounding, is
// left, and so much larger beside the rest. An error of 2^-15 of the value that
// changes little from one to the next does not show in a result of 16 bits:
// kSmooth is what such a norm makes results of 16 bits of. Of others it is not,
// in tf32 either: of a value that is nearly all bias the products' error is as
// small as they are.
//
// Fills in LoweredValue::exactness. FindRanges must have run.
void FindDemands(Grade grade, LoweredPlan* plan);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_VALUE_DEMANDS_H_
