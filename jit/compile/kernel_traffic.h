#ifndef KILN_JIT_COMPILE_KERNEL_TRAFFIC_H_
#define KILN_JIT_COMPILE_KERNEL_TRAFFIC_H_

#include <cstdint>

#include "jit/compile/schedule.h"

namespace kiln {

// Bytes that one kernel of `schedule` must read from memory, and write to it:
// each tensor once, with the states that blocks leave for other kernels
// (conv_states.h), and without those that blocks of one kernel exchange.
int64_t BytesRead(const Schedule& schedule, const Kernel& kernel);
int64_t BytesWritten(const Schedule& schedule, const Kernel& kernel);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_KERNEL_TRAFFIC_H_
