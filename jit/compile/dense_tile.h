#ifndef KILN_JIT_COMPILE_DENSE_TILE_H_
#define KILN_JIT_COMPILE_DENSE_TILE_H_

#include <optional>

#include "jit/artifact/target.h"
#include "jit/compile/lowered_plan.h"

namespace kiln {

// How dense.cu divides a convolution whose filter is as large as its images, a
// linear layer, of few images: classifiers, and what weighs channels by their
// means. Null where tensor cores take less time, or it is not one.
std::optional<DirectTile> DenseTileOf(const LoweredPlan& plan, const Node& conv,
                                      const Target& target);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_DENSE_TILE_H_
