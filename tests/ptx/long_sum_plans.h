#ifndef KILN_TESTS_PTX_LONG_SUM_PLANS_H_
#define KILN_TESTS_PTX_LONG_SUM_PLANS_H_

#include <vector>

#include "tests/ptx/template_plans.h"

namespace kiln::ptx {

// Convolutions of operands in two parts with so many taps that sums of a chunk
// leave the tensor cores in parts (ConvGeometry::chains).
std::vector<TemplatePlan> LongSumPlans();

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_LONG_SUM_PLANS_H_
