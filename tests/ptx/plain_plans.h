#ifndef KILN_TESTS_PTX_PLAIN_PLANS_H_
#define KILN_TESTS_PTX_PLAIN_PLANS_H_

#include <vector>

#include "tests/ptx/template_plans.h"

namespace kiln::ptx {

// What needs neither tensor cores nor rows on chip: depthwise convolutions,
// pointwise ops, poolings and reductions.
std::vector<TemplatePlan> PlainPlans();

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_PLAIN_PLANS_H_
