#ifndef KILN_TESTS_PTX_APART_PLANS_H_
#define KILN_TESTS_PTX_APART_PLANS_H_

#include <vector>

#include "tests/ptx/template_plans.h"

namespace kiln::ptx {

// Convolutions of which each row of a tile is the rows of a product
// (ConvGeometry::run_columns).
std::vector<TemplatePlan> ApartPlans();

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_APART_PLANS_H_
