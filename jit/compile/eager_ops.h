#ifndef KILN_JIT_COMPILE_EAGER_OPS_H_
#define KILN_JIT_COMPILE_EAGER_OPS_H_

#include "jit/artifact/target.h"
#include "jit/compile/reduce_geometry.h"
#include "jit/plan/op.h"
#include "jit/plan/tensor_desc.h"
#include "kernel_sources/eager_parameters.cuh"

namespace kiln {

// What the kernels of eager.cu are told of an operation of a valid plan. Grids
// are left to the caller.

EagerType EagerTypeOf(DataType type);

// Of a unary or binary op, or a cast; operands are still to be described.
EagerPointwise EagerPointwiseOf(const Op& op, const Dims& result);

// A tensor of extents `dims`, broadcast to `result`.
EagerOperand EagerOperandOf(const Dims& dims, DataType type,
                            const Dims& result);

// Of a group_norm, batch_norm or softmax.
EagerNormalize EagerNormalizeOf(const Op& op, const Dims& dims);

// Of a reduction, or of the statistics of a group_norm or softmax. As many
// splits as give each multiprocessor of `target` work.
EagerReduce EagerReduceOf(const Op& op, const Dims& dims, const Target& target);

// Of a convolution, transposed or not.
EagerConv2d EagerConv2dOf(const Op& op, const Dims& input, const Dims& weight,
                          const Dims& result);

EagerPool2d EagerPool2dOf(const Op& op, const Dims& input, const Dims& result);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_EAGER_OPS_H_
