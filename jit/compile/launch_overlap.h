#ifndef KILN_JIT_COMPILE_LAUNCH_OVERLAP_H_
#define KILN_JIT_COMPILE_LAUNCH_OVERLAP_H_

#include "jit/artifact/target.h"
#include "jit/compile/schedule.h"

namespace kiln {

// Sets `overlaps` and `fetches_early` of kernels: which begin while the one
// before them ends (dependent_launch.cuh; sm_90 and up). Not those whose grid
// must be resident as a whole, nor those that read neighbours again from the
// L1, where the kernel before has left it a smaller share: a multiprocessor
// keeps that until it is idle.
void OverlapLaunches(const Target& target, Schedule* schedule);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_LAUNCH_OVERLAP_H_
