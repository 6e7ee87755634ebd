#ifndef KILN_JIT_COMPILE_COMPUTE_CAPABILITY_H_
#define KILN_JIT_COMPILE_COMPUTE_CAPABILITY_H_

#include <cstdint>

#include "jit/artifact/target.h"

namespace kiln {

// Facts of the CUDA Programming Guide's table of technical specifications per
// compute capability.

// 90 for "sm_90a"; 0 for the cpu.
int ComputeCapability(const Target& target);

// The most shared memory that one block may have, static and dynamic, in bytes.
int64_t MaxSharedBytes(const Target& target);

// What shared memory takes of the 256 KB that it has together with the L1 on
// sm_90, where a multiprocessor's blocks need `bytes`.
int64_t ShareOfShared(int64_t bytes);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_COMPUTE_CAPABILITY_H_
