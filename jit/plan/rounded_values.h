#ifndef KILN_JIT_PLAN_ROUNDED_VALUES_H_
#define KILN_JIT_PLAN_ROUNDED_VALUES_H_

#include <vector>

#include "jit/plan/plan.h"

namespace kiln {

// By value: whether it is rounded to its nominal type as soon as an op has
// computed it, because a convolution takes it as its input or weight, and both
// of these have that type, one of 16 bits. Casts and inputs have been rounded.
// `values` are those of ValidatePlan.
std::vector<bool> RoundedValues(const Plan& plan,
                                const std::vector<TensorDesc>& values);

}  // namespace kiln

#endif  // KILN_JIT_PLAN_ROUNDED_VALUES_H_
