#ifndef KILN_TESTS_PTX_JOINED_PLANS_H_
#define KILN_TESTS_PTX_JOINED_PLANS_H_

#include <vector>

#include "tests/ptx/template_plans.h"

namespace kiln::ptx {

// Convolutions of several groups, which are multiplied as fewer
// (conv_joined.cuh).
std::vector<TemplatePlan> JoinedPlans();

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_JOINED_PLANS_H_
