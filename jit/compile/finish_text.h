#ifndef KILN_JIT_COMPILE_FINISH_TEXT_H_
#define KILN_JIT_COMPILE_FINISH_TEXT_H_

#include <string>
#include <vector>

#include "jit/compile/element_code.h"

namespace kiln {

// Lines of a Spec: the struct Finish of conv_finish.cuh, which computes the
// nodes in `kernel.group.finish` as pointwise.cuh asks. Its tensors are added
// to the kernel's.
std::vector<std::string> FinishText(const Schedule& schedule,
                                    const Kernel& kernel,
                                    KernelTensors* tensors);

// Whether `store` is of a value that those nodes make.
bool IsOfFinish(const Schedule& schedule, const Kernel& kernel,
                const Store& store);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_FINISH_TEXT_H_
