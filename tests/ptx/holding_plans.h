#ifndef KILN_TESTS_PTX_HOLDING_PLANS_H_
#define KILN_TESTS_PTX_HOLDING_PLANS_H_

#include <vector>

#include "tests/ptx/template_plans.h"

namespace kiln::ptx {

// Blocks that hold images in several rounds: of as many chunks as there are
// steps beside them and more, of fewer, and of one; with teams that have more
// images than others.
// Beside them, plans whose blocks have parts of normalised groups, held or not,
// and windows that go by way of shared memory.
std::vector<TemplatePlan> HoldingPlans();

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_HOLDING_PLANS_H_
