#ifndef KILN_TESTS_PTX_EIGHTS_PLANS_H_
#define KILN_TESTS_PTX_EIGHTS_PLANS_H_

#include <vector>

#include "tests/ptx/template_plans.h"

namespace kiln::ptx {

// Convolutions whose tiles have rows of eight pixels (ConvGeometry).
std::vector<TemplatePlan> EightsPlans();

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_EIGHTS_PLANS_H_
