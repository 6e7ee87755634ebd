#ifndef KILN_JIT_COMPILE_POINTWISE_CALL_H_
#define KILN_JIT_COMPILE_POINTWISE_CALL_H_

#include <string>
#include <vector>

#include "jit/plan/op.h"

namespace kiln {

// The expression that computes a pointwise op on f32 operands that stand in
// `operands` as text: "kiln::LeakyRelu(v0, 0x1.47ae14p-7f)". The functions are
// those of kernel_sources/math.cuh. `op` must be unary, binary, a cast, or
// softmax with operands input, largest, sum.
std::string PointwiseCall(OpKind op, const Attributes& attributes,
                          const std::vector<std::string>& operands);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_POINTWISE_CALL_H_
