#ifndef KILN_JIT_COMPILE_CONV_SOFTMAX_H_
#define KILN_JIT_COMPILE_CONV_SOFTMAX_H_

#include <vector>

#include "jit/compile/fusion.h"
#include "jit/compile/lowered_plan.h"

namespace kiln {

// Makes one group of a softmax over channels of what convolution
// `groups[conv]`, or pointwise nodes that alone begin with its elements, end
// with: those nodes are its prologue, the statistics its anchor, the softmax
// and what follows its shares (conv_softmax.cuh). The groups that it is made of
// are left empty. Returns whether there was one; only the kernel of the
// convolution can compute it.
bool GatherSoftmax(const LoweredPlan& plan, int conv,
                   std::vector<KernelGroup>* groups);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_SOFTMAX_H_
