#ifndef KILN_JIT_COMPILE_STEM_TILE_H_
#define KILN_JIT_COMPILE_STEM_TILE_H_

#include <optional>

#include "jit/artifact/target.h"
#include "jit/compile/lowered_plan.h"
#include "jit/plan/plan.h"

namespace kiln {

// How stem_conv2d.cu divides `conv`, of at most four channels, as networks that
// read images begin with; null where others take less time.
std::optional<DirectTile> StemTileOf(const LoweredPlan& plan, const Node& conv,
                                     Grade grade, const Target& target);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_STEM_TILE_H_
