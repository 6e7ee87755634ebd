#ifndef KILN_JIT_COMPILE_OP_COST_H_
#define KILN_JIT_COMPILE_OP_COST_H_

#include <cstdint>
#include <vector>

#include "jit/compile/lowered_plan.h"

namespace kiln {

// Instructions for an element, roughly, from the generated code. A special
// function counts as what is issued while it runs.
int64_t InstructionsOf(OpKind op);

// Of all `nodes`.
int64_t InstructionsOf(const LoweredPlan& plan, const std::vector<int>& nodes);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_OP_COST_H_
