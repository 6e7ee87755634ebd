#ifndef KILN_JIT_COMPILE_LAY_SPEC_H_
#define KILN_JIT_COMPILE_LAY_SPEC_H_

#include "jit/compile/kernel_spec.h"

namespace kiln {

// The constants of the kernel that lays down the input of a convolution for
// conv_lines.cuh: lay_lines.cu. Kernel::lays().
KernelSpec MakeLaySpec(const Schedule& schedule, const Kernel& kernel);

// The fields for what that kernel leaves, of it or of one that reads it as
// Tensors::input.
void AddLaidLines(const Kernel& kernel, bool writes, KernelTensors* tensors);

// The field for the scales of what the convolution itself lays down
// (kernel.laid_results), which that kernel writes and the convolution reads.
void AddResultScales(const Kernel& kernel, bool writes, KernelTensors* tensors);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_LAY_SPEC_H_
