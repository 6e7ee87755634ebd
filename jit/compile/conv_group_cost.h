#ifndef KILN_JIT_COMPILE_CONV_GROUP_COST_H_
#define KILN_JIT_COMPILE_CONV_GROUP_COST_H_

#include "jit/compile/conv_geometry.h"

namespace kiln {

// Of warpgroups, what conv_group_cost.cc and conv_held_cost.cc have in common.

// `in_short`, or what is nearer to `in_long` where an element is a long sum.
double InLong(const ConvGeometry& geometry, double in_short, double in_long);

// Cycles of one warpgroup's products of a chunk. The tensor cores read both
// operands from shared memory, 128 bytes in a cycle; runs of pixels that a tap
// moves are not aligned to that, unless they are swizzled columns.
double CyclesOfTurn(const ConvGeometry& geometry);

// Of all chunks of a tile.
double WeightBytes(const ConvGeometry& geometry);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_GROUP_COST_H_
