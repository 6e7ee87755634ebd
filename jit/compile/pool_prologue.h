#ifndef KILN_JIT_COMPILE_POOL_PROLOGUE_H_
#define KILN_JIT_COMPILE_POOL_PROLOGUE_H_

#include <vector>

#include "jit/compile/lowered_plan.h"

namespace kiln {

// Whether the pooling `anchor` computes `prologue`, which makes its operand,
// for each element that it loads: windows are disjoint, or what is computed
// more than once takes less time than a kernel that stores it.
bool PoolTakesPrologue(const LoweredPlan& plan, const Node& anchor,
                       const std::vector<int>& prologue);

// Whether a pooling with this prologue has several elements in flight before it
// computes on one: longer ones hide the latency of loads by themselves, and
// their code is written for each.
bool PoolLoadsAhead(const LoweredPlan& plan, const std::vector<int>& prologue);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_POOL_PROLOGUE_H_
