#ifndef KILN_JIT_PLAN_REFERENCE_OPS_H_
#define KILN_JIT_PLAN_REFERENCE_OPS_H_

#include <cstdint>
#include <memory>
#include <span>

#include "jit/plan/op.h"
#include "jit/plan/reference_workers.h"
#include "jit/plan/tensor_desc.h"

namespace kiln {

// The value of one tensor while a plan is evaluated: contiguous doubles. A
// resource: owns its elements.
struct ReferenceTensor {
  Dims dims;
  std::unique_ptr<double[]> data;

  int64_t size() const { return NumElements(dims); }
};

// Operands of one op, in the order of OpKind; null where one is left out.
// Constants are tensors of rank 0.
using ReferenceOperands = std::span<const ReferenceTensor* const>;

// Each function computes one class of ops (the OpClass of its name) into
// `result`, whose dims are set and whose elements are allocated. Everything
// has passed ValidatePlan. False once the workers are cancelled.
//
// Formulas, and what NaN, Inf and empty windows give: docs/ops.md. Padding is
// left out of sums, not multiplied as zeros, so an infinite weight does not
// turn borders into NaN.
bool ReferenceConv(const Op& op, ReferenceOperands operands,
                   const ReferenceWorkers& workers, ReferenceTensor* result);
bool ReferenceConvTranspose(const Op& op, ReferenceOperands operands,
                            const ReferenceWorkers& workers,
                            ReferenceTensor* result);
bool ReferenceGroupNorm(const Op& op, ReferenceOperands operands,
                        const ReferenceWorkers& workers,
                        ReferenceTensor* result);
bool ReferenceBatchNorm(const Op& op, ReferenceOperands operands,
                        const ReferenceWorkers& workers,
                        ReferenceTensor* result);
bool ReferencePool(const Op& op, ReferenceOperands operands,
                   const ReferenceWorkers& workers, ReferenceTensor* result);
bool ReferenceReduce(const Op& op, ReferenceOperands operands,
                     const ReferenceWorkers& workers, ReferenceTensor* result);
bool ReferenceSoftmax(const Op& op, ReferenceOperands operands,
                      const ReferenceWorkers& workers, ReferenceTensor* result);
bool ReferenceUnary(const Op& op, ReferenceOperands operands,
                    const ReferenceWorkers& workers, ReferenceTensor* result);
bool ReferenceBinary(const Op& op, ReferenceOperands operands,
                     const ReferenceWorkers& workers, ReferenceTensor* result);
bool ReferenceCast(const Op& op, ReferenceOperands operands,
                   const ReferenceWorkers& workers, ReferenceTensor* result);

// PyTorch's maximum and minimum: NaN if either is.
double MaximumOf(double a, double b);
double MinimumOf(double a, double b);

}  // namespace kiln

#endif  // KILN_JIT_PLAN_REFERENCE_OPS_H_
