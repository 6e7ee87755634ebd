#ifndef KILN_TESTS_PTX_CORRELATION_PLANS_H_
#define KILN_TESTS_PTX_CORRELATION_PLANS_H_

#include <vector>

#include "tests/ptx/template_plans.h"

namespace kiln::ptx {

// Statistics of convolutions that come from correlations of the input, which
// would not be faster for plans as small as these.
std::vector<TemplatePlan> CorrelationPlans();

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_CORRELATION_PLANS_H_
