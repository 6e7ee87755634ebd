#ifndef KILN_JIT_COMPILE_TURN_AROUND_H_
#define KILN_JIT_COMPILE_TURN_AROUND_H_

#include "jit/compile/schedule.h"

namespace kiln {

// Sets `backwards` of kernels that read what the kernel before has gone through
// from the beginning: a value, no parameter, that it has read or made. What of
// that is still in the L2 cache is its end. Convolutions know one way only.
void TurnAround(const Plan& plan, Schedule* schedule);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_TURN_AROUND_H_
