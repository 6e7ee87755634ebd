#ifndef KILN_JIT_COMPILE_ROW_CHAIN_SPEC_H_
#define KILN_JIT_COMPILE_ROW_CHAIN_SPEC_H_

#include "jit/compile/kernel_spec.h"
#include "jit/compile/schedule.h"

namespace kiln {

// The constants of a kernel that takes rows through several reductions:
// `kernel.rows` is set, and is_chain().
KernelSpec MakeRowChainSpec(const Schedule& schedule, const Kernel& kernel);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_ROW_CHAIN_SPEC_H_
