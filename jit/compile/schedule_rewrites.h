#ifndef KILN_JIT_COMPILE_SCHEDULE_REWRITES_H_
#define KILN_JIT_COMPILE_SCHEDULE_REWRITES_H_

#include <string>
#include <vector>

#include "jit/compile/schedule.h"
#include "jit/plan/canonical.h"

namespace kiln {

// What `schedule` does otherwise than `plan` says, one sentence each: pooling
// moved, or not moved though it could be; softmax split; totals taken row by
// row; convolutions computed again, or brought through memory; calls that need
// less because of their operands' ranges.
std::vector<std::string> RewritesOf(const CanonicalPlan& plan,
                                    const Schedule& schedule);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_SCHEDULE_REWRITES_H_
