#ifndef KILN_JIT_COMPILE_SPLIT_SOFTMAX_H_
#define KILN_JIT_COMPILE_SPLIT_SOFTMAX_H_

#include <set>

#include "jit/compile/lowered_plan.h"
#include "jit/compile/schedule.h"

namespace kiln {

// Makes of a softmax what it is made of:
//
//   y = softmax(x, dim=1)   ->   m = amax(x, dim=1, keepdim=true)
//                                d = sub(x, m)
//                                p = exp(d)
//                                s = sum(p, dim=1, keepdim=true)
//                                y = div(p, s)
//
// of those whose results are in `results`. Kernels that take rows through
// several reductions hold elements in registers also where rows lie side by
// side (row_warp_chain.cu), each power computed once. Whether they do is
// decided by the models' first choice of keepers; other candidates are those of
// several reductions.
LoweredPlan SplitSoftmax(LoweredPlan plan, const std::set<int>& results);

// Results of what may be split: of softmax over rows side by side that a kernel
// of rows, no convolution's, begins with.
std::set<int> SoftmaxOfColumns(const Schedule& schedule);

// Of `results`, those that registers do not hold in `schedule`, of a plan where
// they are split, or of which threads have next to nothing.
std::set<int> SplitInVain(const Schedule& schedule,
                          const std::set<int>& results);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_SPLIT_SOFTMAX_H_
