#ifndef KILN_JIT_COMPILE_CONV_SHARED_H_
#define KILN_JIT_COMPILE_CONV_SHARED_H_

#include <cstdint>

#include "jit/compile/conv_demands.h"
#include "jit/compile/conv_geometry.h"

namespace kiln {

// Of a multiprocessor's shared memory, what a convolution's blocks have at
// most.
int64_t SharedBytes(const ConvGeometry& geometry, const ConvDemands& demands);

// Whether that, or so many bytes, leaves the L1 of sm_90 as little as can be:
// loads that are on their way fill it.
bool LeavesLittleL1(const ConvGeometry& geometry, const ConvDemands& demands);
bool LeavesLittleL1(int64_t shared_bytes);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_SHARED_H_
