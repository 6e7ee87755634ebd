#ifndef KILN_TESTS_PTX_ROW_PLANS_H_
#define KILN_TESTS_PTX_ROW_PLANS_H_

#include <vector>

#include "tests/ptx/template_plans.h"

namespace kiln::ptx {

// Rows on chip, neighbours in memory or side by side, through one reduction or
// several, and reductions that read what nobody else does.
std::vector<TemplatePlan> RowPlans();

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_ROW_PLANS_H_
