#ifndef KILN_TESTS_PTX_PHASE_PLANS_H_
#define KILN_TESTS_PTX_PHASE_PLANS_H_

#include <vector>

#include "tests/ptx/template_plans.h"

namespace kiln::ptx {

// Convolutions that are cut or rewritten before warps multiply: phases of the
// output, some without a tap that others have; those of the rows of a dilated
// filter; patches; and operands that the plan computes in 16 bits.
std::vector<TemplatePlan> PhasePlans();

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_PHASE_PLANS_H_
