#ifndef KILN_JIT_COMPILE_LAUNCH_STEPS_H_
#define KILN_JIT_COMPILE_LAUNCH_STEPS_H_

#include <vector>

#include "jit/artifact/artifact.h"
#include "jit/compile/kernel_spec.h"

namespace kiln {

// Appends the launch steps of one kernel, whose unit is module number `module`.
void AddLaunchSteps(const KernelSpec& spec, int module,
                    std::vector<Step>* steps);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_LAUNCH_STEPS_H_
