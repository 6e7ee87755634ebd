#ifndef KILN_JIT_COMPILE_PACK_SPEC_H_
#define KILN_JIT_COMPILE_PACK_SPEC_H_

#include "jit/compile/kernel_spec.h"

namespace kiln {

// The constants of the kernel that packs the weights of a convolution on tensor
// cores (pack_halves.cu, pack_weights.cu).
KernelSpec MakePackSpec(const Schedule& schedule, const Kernel& kernel);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_PACK_SPEC_H_
