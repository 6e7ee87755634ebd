#ifndef KILN_TESTS_JIT_PLAN_PARSE_PLAN_H_
#define KILN_TESTS_JIT_PLAN_PARSE_PLAN_H_

#include <string_view>

#include "jit/plan/plan.h"

namespace kiln {

// The plan that `text` spells; ends the program, with the error, if it spells
// none. The plan is not validated.
Plan MustParsePlan(std::string_view text);

}  // namespace kiln

#endif  // KILN_TESTS_JIT_PLAN_PARSE_PLAN_H_
