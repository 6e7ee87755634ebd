#ifndef KILN_JIT_COMPILE_HEAD_TILE_H_
#define KILN_JIT_COMPILE_HEAD_TILE_H_

#include <optional>

#include "jit/artifact/target.h"
#include "jit/compile/lowered_plan.h"

namespace kiln {

// How head_conv2d.cu divides `conv`, of 16-bit numbers, several taps and few
// results, as networks that make images end with; null where others take less
// time.
std::optional<DirectTile> HeadTileOf(const LoweredPlan& plan, const Node& conv,
                                     const Target& target);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_HEAD_TILE_H_
