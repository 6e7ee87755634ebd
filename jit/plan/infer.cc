#include "jit/plan/infer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "jit/plan/errors.h"

namespace kiln {

absl::StatusOr<TensorDesc> InferResult(const OpContext& context) {
  switch (context.info.op_class) {
    case OpClass::kConv:
      return InferConv(context);
    case OpClass::kConvTranspose:
      return InferConvTranspose(context);
    case OpClass::kGroupNorm:
      return InferGroupNorm(context);
    case OpClass::kBatchNorm:
      return InferBatchNorm(context);
    case OpClass::kPool:
      return InferPool(context);
    case OpClass::kReduce:
      return InferReduce(context);
    case OpClass::kSoftmax:
      return InferSoftmax(context);
    case OpClass::kUnary:
      return InferUnary(context);
    case OpClass::kBinary:
      return InferBinary(context);
    case OpClass::kCast:
      return InferCast(context);
  }
  return absl::InternalError("An op has no class.");
}

DataType PromoteTypes(const std::vector<const TensorDesc*>& tensors) {
  const bool any_dims =
      std::any_of(tensors.begin(), tensors.end(), [](const TensorDesc* tensor) {
        return tensor != nullptr && !tensor->dims.empty();
      });
  std::optional<DataType> result;
  for (const TensorDesc* tensor : tensors) {
    if (tensor == nullptr || (any_dims && tensor->dims.empty())) continue;
    const DataType type = tensor->dtype;
    result = result.value_or(type) == type ? type : DataType::kF32;
  }
  return result.value_or(DataType::kF32);
}

std::string FieldPath(const OpContext& context, std::string_view field) {
  return fmt::format("ops[{}].{}", context.index, field);
}

std::string OperandPath(const OpContext& context, size_t operand) {
  return fmt::format("ops[{}].operands[{}]", context.index, operand);
}

absl::Status CheckRange(const OpContext& context, std::string_view field,
                        int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return InvalidField(FieldPath(context, field), "is out of range",
                      fmt::format("{}", value),
                      fmt::format("{} to {}", min, max));
}

absl::Status CheckPair(const OpContext& context, std::string_view field,
                       const Pair& value, int64_t min, int64_t max) {
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] >= min && value[i] <= max) continue;
    return CheckRange(context, fmt::format("{}[{}]", field, i), value[i], min,
                      max);
  }
  return absl::OkStatus();
}

absl::Status CheckNoPair(const OpContext& context, std::string_view field,
                         const Pair& value, int64_t none,
                         std::string_view owner) {
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] == none) continue;
    return InvalidField(FieldPath(context, fmt::format("{}[{}]", field, i)),
                        fmt::format("belongs to {}", owner),
                        fmt::format("{}", value[i]), fmt::format("{}", none));
  }
  return absl::OkStatus();
}

absl::Status CheckRank(const OpContext& context, size_t operand, int min,
                       int max) {
  const TensorDesc& desc = *context.operands[operand];
  const int rank = static_cast<int>(desc.dims.size());
  if (rank >= min && rank <= max) return absl::OkStatus();
  return InvalidField(
      OperandPath(context, operand),
      fmt::format("{} of {} has the wrong rank",
                  context.info.operands[operand].name, context.info.name),
      fmt::format("{} of rank {}", ToString(desc), rank),
      min == max ? fmt::format("rank {}", min)
                 : fmt::format("rank {} to {}", min, max));
}

absl::Status CheckDims(const OpContext& context, size_t operand,
                       const Dims& dims, std::string_view meaning) {
  const TensorDesc* const desc = context.operands[operand];
  if (desc == nullptr || desc->dims == dims) return absl::OkStatus();
  return InvalidField(OperandPath(context, operand),
                      fmt::format("{} of {} must have the extents {}",
                                  context.info.operands[operand].name,
                                  context.info.name, meaning),
                      ToString(*desc), ToString({desc->dtype, dims}));
}

absl::Status CheckEps(const OpContext& context, std::string_view field,
                      float eps) {
  if (std::isfinite(eps) && eps >= 0.0f) return absl::OkStatus();
  return InvalidField(FieldPath(context, field), "is out of range",
                      fmt::format("{}", eps), "finite and at least 0");
}

absl::StatusOr<int64_t> WrapDim(const OpContext& context,
                                std::string_view field, int64_t dim, int rank) {
  const int64_t count = std::max(rank, 1);
  if (dim < -count || dim >= count) {
    return InvalidField(FieldPath(context, field),
                        "names a dimension that the input does not have",
                        fmt::format("{}", dim),
                        fmt::format("{} to {}", -count, count - 1));
  }
  return dim < 0 ? dim + count : dim;
}

}  // namespace kiln
