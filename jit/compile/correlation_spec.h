#ifndef KILN_JIT_COMPILE_CORRELATION_SPEC_H_
#define KILN_JIT_COMPILE_CORRELATION_SPEC_H_

#include "jit/compile/kernel_spec.h"

namespace kiln {

// The constants of a kernel that has the statistics of a convolution's results
// from correlations of its input (correlation.h).
KernelSpec MakeCorrelationSpec(const Schedule& schedule, const Kernel& kernel);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CORRELATION_SPEC_H_
