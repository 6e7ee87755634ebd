#ifndef KILN_JIT_COMPILE_DIRECT_COST_H_
#define KILN_JIT_COMPILE_DIRECT_COST_H_

#include <cstdint>

#include "jit/artifact/target.h"
#include "jit/plan/plan.h"

namespace kiln {

// What choices of direct convolutions (direct_conv.h) know of their kernels.

// Whether stride, dilation and padding leave tiles room in shared memory.
bool HasSmallSteps(const ConvAttributes& conv);

// Of an H100, if the target does not say.
int64_t MultiprocessorsOf(const Target& target);

// Whether loads that wait for each other, `turns` of them, take longer than
// `share` of what the memory takes to bring `bytes`. A few are no matter.
bool TakeTooManyTurns(int64_t turns, int64_t bytes, int64_t sm_count,
                      double share);

// Whether results may go through memory before they are reduced, which kernels
// of tensor cores do on chip: if a pixel's are few beside what is read, or
// multiplied, for it.
bool AreSmallBeside(int64_t results, int64_t others);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_DIRECT_COST_H_
