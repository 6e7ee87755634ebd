#ifndef KILN_JIT_COMPILE_ROW_SPEC_H_
#define KILN_JIT_COMPILE_ROW_SPEC_H_

#include "jit/compile/kernel_spec.h"
#include "jit/compile/schedule.h"

namespace kiln {

// The constants of a kernel that keeps rows on chip: `kernel.rows` is set.
KernelSpec MakeRowSpec(const Schedule& schedule, const Kernel& kernel);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_ROW_SPEC_H_
