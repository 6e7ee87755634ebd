#ifndef KILN_JIT_COMPILE_DEPTHWISE_WALK_H_
#define KILN_JIT_COMPILE_DEPTHWISE_WALK_H_

#include <optional>

#include "jit/compile/depthwise_tile.h"

namespace kiln {

// A walk, and the cycles of a multiprocessor of an H100 that it would take.
struct DepthwiseWalk {
  DepthwiseTile tile;
  double cycles = 0;
};

// The walk of threads with `vector` columns that takes the fewest cycles of
// `sm_count` multiprocessors; nothing if strides or dilations are not 1, a
// thread has no room for as many rows of sums as the filter has, copies are too
// narrow to go on by themselves, or images or filters too small.
std::optional<DepthwiseWalk> ChooseDepthwiseWalk(const DepthwiseWork& work,
                                                 int vector, int sm_count);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_DEPTHWISE_WALK_H_
