#ifndef KILN_JIT_PLAN_INFER_H_
#define KILN_JIT_PLAN_INFER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/plan/op.h"
#include "jit/plan/op_table.h"
#include "jit/plan/tensor_desc.h"

namespace kiln {

// Shape inference, one function per class of op. Private to ValidatePlan,
// which checks operands and the kind of attributes first; the functions here
// check attribute values and extents. Errors: INVALID_ARGUMENT.

inline constexpr std::string_view kImageAxes[] = {"height", "width"};

// Wide enough for any sum or product of two checked extents.
__extension__ using Wide = __int128;

// One op of a plan, seen with the types of its operands.
struct OpContext {
  const Op& op;
  const OpInfo& info;
  int index;  // of the op in the plan
  // One per operand; nullptr for one left out and for a constant.
  std::vector<const TensorDesc*> operands;
};

// Type and extents of the result, by PyTorch's rules. Its size is not checked.
absl::StatusOr<TensorDesc> InferResult(const OpContext& context);

absl::StatusOr<TensorDesc> InferConv(const OpContext& context);
absl::StatusOr<TensorDesc> InferConvTranspose(const OpContext& context);
absl::StatusOr<TensorDesc> InferGroupNorm(const OpContext& context);
absl::StatusOr<TensorDesc> InferBatchNorm(const OpContext& context);
absl::StatusOr<TensorDesc> InferPool(const OpContext& context);
absl::StatusOr<TensorDesc> InferReduce(const OpContext& context);
absl::StatusOr<TensorDesc> InferSoftmax(const OpContext& context);
absl::StatusOr<TensorDesc> InferUnary(const OpContext& context);
absl::StatusOr<TensorDesc> InferBinary(const OpContext& context);
absl::StatusOr<TensorDesc> InferCast(const OpContext& context);

// PyTorch's promotion over the tensors given (nullptr is skipped): f16 with
// bf16 gives f32, and a rank-0 tensor counts only if all are of rank 0. f32
// if there is no tensor.
DataType PromoteTypes(const std::vector<const TensorDesc*>& tensors);

// "ops[3].<field>".
std::string FieldPath(const OpContext& context, std::string_view field);

// "ops[3].operands[1]".
std::string OperandPath(const OpContext& context, size_t operand);

// `field`, such as "conv.groups", lies in [min, max].
absl::Status CheckRange(const OpContext& context, std::string_view field,
                        int64_t value, int64_t min, int64_t max);

// Both entries of `field`, such as "conv.stride", lie in [min, max].
absl::Status CheckPair(const OpContext& context, std::string_view field,
                       const Pair& value, int64_t min, int64_t max);

// Both entries of `field` are `none`: `owner`, another op, has that attribute.
absl::Status CheckNoPair(const OpContext& context, std::string_view field,
                         const Pair& value, int64_t none,
                         std::string_view owner);

// Operand `operand` has a rank in [min, max].
absl::Status CheckRank(const OpContext& context, size_t operand, int min,
                       int max);

// Operand `operand`, unless it is left out, has exactly extents `dims`;
// `meaning`, such as "[channels]", names them in the message.
absl::Status CheckDims(const OpContext& context, size_t operand,
                       const Dims& dims, std::string_view meaning);

// `eps` is finite and at least 0.
absl::Status CheckEps(const OpContext& context, std::string_view field,
                      float eps);

// `dim` of a tensor of `rank`, counted from the front. A scalar has one
// dimension here, as in PyTorch.
absl::StatusOr<int64_t> WrapDim(const OpContext& context,
                                std::string_view field, int64_t dim, int rank);

}  // namespace kiln

#endif  // KILN_JIT_PLAN_INFER_H_
