#ifndef KILN_TESTS_ROW_SHAPE_PLANS_H_
#define KILN_TESTS_ROW_SHAPE_PLANS_H_

#include <vector>

#include "tests/shape_plans.h"

namespace kiln {

// For the set `tails` of shape_sets.h: what is computed of a reduction and of
// the elements that it is taken of, at the edges of who keeps these on chip,
// and linear layers written as convolutions of single pixels.
std::vector<NamedPlan> RowTails();

}  // namespace kiln

#endif  // KILN_TESTS_ROW_SHAPE_PLANS_H_
