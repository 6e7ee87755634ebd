#ifndef KILN_JIT_COMPILE_NARROW_CONV_H_
#define KILN_JIT_COMPILE_NARROW_CONV_H_

#include <optional>

#include "jit/artifact/target.h"
#include "jit/compile/lowered_plan.h"

namespace kiln {

// How narrow_conv2d.cu divides `conv`, of one tap and few results, for which
// tensor cores would have hardly anything to multiply while the input is on its
// way: networks whose results are images or segments end so. Reductions and
// pooling, which tensor cores' kernels would do with results on chip, read them
// from memory then: where such follow, only if results are a small part of what
// is read anyway.
std::optional<DirectTile> NarrowConvTile(const LoweredPlan& plan,
                                         const Node& conv,
                                         const Target& target);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_NARROW_CONV_H_
