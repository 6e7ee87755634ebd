#ifndef KILN_JIT_COMPILE_COMPUTE_AGAIN_H_
#define KILN_JIT_COMPILE_COMPUTE_AGAIN_H_

#include <vector>

#include "jit/compile/lowered_plan.h"
#include "jit/compile/row_residency.h"

namespace kiln {

// Takes pointwise groups of few, short operations apart: each kernel that reads
// their results computes these for itself, where that moves no more bytes than
// storing them, or so few more that a launch takes longer. So the squared
// differences of a norm written by hand are made of the input by the kernel of
// their mean, and the differences once more by the one that divides them. A
// number for each channel, as of a gate, may take longer operations: neighbours
// in a vector have it in common, and a kernel of its own would take longer.
// Readers are plain reductions and pooling, which take it as their prologue,
// and pointwise groups; a group that anything else reads, or that makes an
// output, stays.
std::vector<RowGroup> ComputeAgain(const LoweredPlan& plan,
                                   std::vector<RowGroup> groups);

// Whether a pointwise group is few and short operations in that sense.
bool AreFewShort(const LoweredPlan& plan, const KernelGroup& group);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_COMPUTE_AGAIN_H_
