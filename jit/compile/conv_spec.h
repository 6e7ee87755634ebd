#ifndef KILN_JIT_COMPILE_CONV_SPEC_H_
#define KILN_JIT_COMPILE_CONV_SPEC_H_

#include "jit/compile/kernel_spec.h"

namespace kiln {

// The constants of a convolution on tensor cores (conv_mma.cu) and its tail.
KernelSpec MakeConvSpec(const Schedule& schedule, const Kernel& kernel);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_SPEC_H_
