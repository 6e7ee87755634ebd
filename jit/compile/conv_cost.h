#ifndef KILN_JIT_COMPILE_CONV_COST_H_
#define KILN_JIT_COMPILE_CONV_COST_H_

#include "jit/compile/conv_geometry.h"

namespace kiln {

// Cycles until the last block of a convolution is done on a device with
// `sm_count` multiprocessors. A model, good for comparing tiles of one
// convolution, not for predicting times.
double ConvCycles(const ConvGeometry& geometry, const ConvDemands& demands,
                  int sm_count);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_COST_H_
