#ifndef KILN_JIT_COMPILE_SPLIT_TOTALS_H_
#define KILN_JIT_COMPILE_SPLIT_TOTALS_H_

#include <set>

#include "jit/compile/lowered_plan.h"
#include "jit/compile/schedule.h"

namespace kiln {

// Takes a total, as losses end in, row by row:
//
//   l = logsumexp(x, dim=1, keepdim=true)   ->   l = logsumexp(x, dim=1, ...)
//   d = sub(x, l)                                d = sub(x, l)
//   t = sum(d, dim=[0, 1])                       r = sum(d, dim=1,
//   keepdim=true)
//                                                t = sum(r, dim=[0, 1])
//
// of those whose results are in `results`: a kernel that takes rows through
// several reductions then reads the elements once.
LoweredPlan SplitTotals(LoweredPlan plan, const std::set<int>& results);

// Results of what may be taken so: of a sum, a mean or an extreme over the rows
// of an earlier reduction, from whose result the elements are computed, and
// over other axes besides.
std::set<int> TotalsOfRows(const LoweredPlan& plan);

// Of `results`, those that no kernel of `schedule`, of a plan where they are
// taken so, has together with an earlier reduction.
std::set<int> TakenInVain(const Schedule& schedule,
                          const std::set<int>& results);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_SPLIT_TOTALS_H_
