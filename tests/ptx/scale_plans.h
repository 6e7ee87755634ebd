#ifndef KILN_TESTS_PTX_SCALE_PLANS_H_
#define KILN_TESTS_PTX_SCALE_PLANS_H_

#include <vector>

#include "tests/ptx/template_plans.h"

namespace kiln::ptx {

// Convolutions whose stages have scales that are too far apart for sums to be
// brought from one to the other (ConvStages::kRescales), and of numbers at the
// ends of what their operands can be.
std::vector<TemplatePlan> ScalePlans();

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_SCALE_PLANS_H_
