#ifndef KILN_JIT_COMPILE_VALUE_RANGES_H_
#define KILN_JIT_COMPILE_VALUE_RANGES_H_

#include "jit/compile/lowered_plan.h"
#include "jit/compile/value_range.h"

namespace kiln {

// Interval analysis: finds the range of every value of the plan, from those of
// a node's operands to that of its result. Inputs and results of convolutions
// and norms can be anything. Ranges are of values as kernels of math.cuh
// compute them, their errors and roundings included.
void FindRanges(LoweredPlan* plan);

// The range of what stands in an operand's place; of a NaN, everything.
ValueRange RangeOf(const LoweredPlan& plan, const Operand& operand);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_VALUE_RANGES_H_
