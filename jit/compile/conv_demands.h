#ifndef KILN_JIT_COMPILE_CONV_DEMANDS_H_
#define KILN_JIT_COMPILE_CONV_DEMANDS_H_

#include <set>
#include <vector>

#include "jit/compile/conv_geometry.h"
#include "jit/compile/fusion.h"
#include "jit/compile/lowered_plan.h"

namespace kiln {

// Results of the nodes of `conv`, a convolution's group, on its domain.
std::set<int> ElementsOf(const LoweredPlan& plan, const KernelGroup& conv);

// Of the kernel that begins with `conv` and goes on with all of `joining`;
// `stores`: others read the elements from memory.
ConvDemands ConvDemandsOf(const LoweredPlan& plan, const KernelGroup& conv,
                          const std::vector<const KernelGroup*>& joining,
                          bool stores);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_DEMANDS_H_
