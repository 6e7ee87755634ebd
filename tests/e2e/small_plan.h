#ifndef KILN_TESTS_E2E_SMALL_PLAN_H_
#define KILN_TESTS_E2E_SMALL_PLAN_H_

#include <cstdint>
#include <string>

#include "jit/plan/plan.h"

namespace kiln::e2e {

// A small plan, different for every `number`: y = relu(x * (number + 0.5)), x
// being f32[elements].
Plan SmallPlan(int number, int64_t elements = 64);

// The same as text, for 64 elements.
std::string SmallPlanText(int number);

}  // namespace kiln::e2e

#endif  // KILN_TESTS_E2E_SMALL_PLAN_H_
