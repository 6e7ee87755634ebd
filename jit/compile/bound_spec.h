#ifndef KILN_JIT_COMPILE_BOUND_SPEC_H_
#define KILN_JIT_COMPILE_BOUND_SPEC_H_

#include "jit/compile/kernel_spec.h"

namespace kiln {

// The constants of the kernel that bounds what a convolution leaves as lines:
// bound_results.cu. Kernel::bounds_results().
KernelSpec MakeBoundSpec(const Schedule& schedule, const Kernel& kernel);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_BOUND_SPEC_H_
