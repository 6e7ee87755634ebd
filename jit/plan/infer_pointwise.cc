#include <fmt/format.h>

#include <algorithm>

#include "jit/plan/errors.h"
#include "jit/plan/infer.h"

namespace kiln {
namespace {

absl::Status CheckClamp(const OpContext& context,
                        const ClampAttributes& clamp) {
  if (clamp.min.has_value() || clamp.max.has_value()) return absl::OkStatus();
  return InvalidField(FieldPath(context, "clamp"), "has no bound", "none",
                      "min, max or both");
}

absl::Status CheckHardtanh(const OpContext& context,
                           const ClampAttributes& clamp) {
  const float min = clamp.min.value_or(-1.0f);
  const float max = clamp.max.value_or(1.0f);
  if (!(min > max)) return absl::OkStatus();
  return InvalidField(FieldPath(context, "clamp.min"),
                      "min_val of hardtanh exceeds max_val",
                      fmt::format("{}", min), fmt::format("at most {}", max));
}

absl::Status CheckGelu(const OpContext& context, const GeluAttributes& gelu) {
  switch (gelu.approximate) {
    case GeluApproximate::kNone:
    case GeluApproximate::kTanh:
      return absl::OkStatus();
  }
  return InvalidField(FieldPath(context, "gelu.approximate"),
                      "is not an approximation of gelu",
                      fmt::format("{}", static_cast<int>(gelu.approximate)),
                      "none (0) or tanh (1)");
}

// Right-aligned extents broadcast against each other; 1 stretches.
absl::StatusOr<Dims> Broadcast(const OpContext& context, const TensorDesc& a,
                               const TensorDesc& b) {
  const size_t rank = std::max(a.dims.size(), b.dims.size());
  Dims dims(rank);
  for (size_t i = 0; i < rank; ++i) {
    // i counts from the innermost dimension.
    const int64_t x = i < a.dims.size() ? a.dims[a.dims.size() - 1 - i] : 1;
    const int64_t y = i < b.dims.size() ? b.dims[b.dims.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) {
      return InvalidField(OperandPath(context, 1),
                          "does not broadcast against the input", ToString(b),
                          fmt::format("{} or extents of 1", ToString(a)));
    }
    dims[rank - 1 - i] = x == 1 ? y : x;
  }
  return dims;
}

}  // namespace

absl::StatusOr<TensorDesc> InferUnary(const OpContext& context) {
  const Attributes& attributes = context.op.attributes;
  absl::Status status;
  if (const auto* clamp = std::get_if<ClampAttributes>(&attributes)) {
    status = context.op.kind == OpKind::kHardtanh
                 ? CheckHardtanh(context, *clamp)
                 : CheckClamp(context, *clamp);
  } else if (const auto* gelu = std::get_if<GeluAttributes>(&attributes)) {
    status = CheckGelu(context, *gelu);
  }
  if (!status.ok()) return status;
  return *context.operands[0];
}

absl::StatusOr<TensorDesc> InferBinary(const OpContext& context) {
  const TensorDesc* const a = context.operands[0];
  const TensorDesc* const b = context.operands[1];
  if (a == nullptr && b == nullptr) {
    return InvalidField(OperandPath(context, 1),
                        fmt::format("{} has two constants", context.info.name),
                        "a constant", "a value");
  }
  if (a == nullptr) return *b;
  if (b == nullptr) return *a;
  absl::StatusOr<Dims> dims = Broadcast(context, *a, *b);
  if (!dims.ok()) return dims.status();
  return TensorDesc{PromoteTypes(context.operands), *std::move(dims)};
}

absl::StatusOr<TensorDesc> InferCast(const OpContext& context) {
  const DataType type = std::get<CastAttributes>(context.op.attributes).dtype;
  if (!ParseDataType(DataTypeName(type)).has_value()) {
    return InvalidField(FieldPath(context, "cast.dtype"), "is not a data type",
                        fmt::format("{}", static_cast<int>(type)),
                        "f32, f16 or bf16");
  }
  return TensorDesc{type, context.operands[0]->dims};
}

}  // namespace kiln
