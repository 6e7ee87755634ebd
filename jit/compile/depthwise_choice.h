#ifndef KILN_JIT_COMPILE_DEPTHWISE_CHOICE_H_
#define KILN_JIT_COMPILE_DEPTHWISE_CHOICE_H_

#include <optional>

#include "jit/artifact/target.h"
#include "jit/compile/schedule.h"

namespace kiln {

// The tile of a group of `plan` whose anchor is a kConv2d of the plain path:
// the fastest, or what needs fewer registers where there is more room; nothing
// if depthwise_conv2d.cu has none for it.
std::optional<DepthwiseTile> DepthwiseTileOf(const LoweredPlan& plan,
                                             const KernelGroup& group,
                                             const Target& target, Room room);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_DEPTHWISE_CHOICE_H_
