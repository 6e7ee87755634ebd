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

// The same of conv_held.cuh: from what blocks hold to what `stores` of those
// nodes' results take.
struct HeldFinishText {
  std::vector<std::string> lines;
  int64_t channel_bytes = 0;  // of its Channel
};
HeldFinishText WriteHeldFinish(const Schedule& schedule, const Kernel& kernel,
                               KernelTensors* tensors);

// Whether `store` is of a value that those nodes make.
bool IsOfFinish(const Schedule& schedule, const Kernel& kernel,
                const Store& store);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_FINISH_TEXT_H_
