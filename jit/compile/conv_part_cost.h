#ifndef KILN_JIT_COMPILE_CONV_PART_COST_H_
#define KILN_JIT_COMPILE_CONV_PART_COST_H_

#include "jit/compile/conv_demands.h"
#include "jit/compile/conv_geometry.h"

namespace kiln {

// What a tile of warpgroups takes of the sum of its parts (conv_group_cost.cc)
// where the filter has a stride, is cut into parts of its rows, or has groups
// that are joined.
double ShareOfParts(const ConvGeometry& geometry, const ConvDemands& demands);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_PART_COST_H_
