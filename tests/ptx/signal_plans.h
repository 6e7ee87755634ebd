#ifndef KILN_TESTS_PTX_SIGNAL_PLANS_H_
#define KILN_TESTS_PTX_SIGNAL_PLANS_H_

#include <vector>

#include "tests/ptx/template_plans.h"

namespace kiln::ptx {

// Convolutions of signals that are taken as images whose rows are parts of one
// (fold_signals.h).
std::vector<TemplatePlan> SignalPlans();

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_SIGNAL_PLANS_H_
