#include <fmt/format.h>

#include "jit/plan/errors.h"
#include "jit/plan/infer.h"
#include "jit/plan/validate.h"

namespace kiln {
namespace {

absl::Status CheckPadding(const OpContext& context,
                          const PoolAttributes& pool) {
  for (size_t i = 0; i < 2; ++i) {
    const int64_t limit = pool.kernel_size[i] / 2;
    if (pool.padding[i] >= 0 && pool.padding[i] <= limit) continue;
    return InvalidField(FieldPath(context, fmt::format("pool.padding[{}]", i)),
                        "exceeds half of the kernel size",
                        fmt::format("{}", pool.padding[i]),
                        fmt::format("0 to {}", limit));
  }
  return absl::OkStatus();
}

// Attributes of the other kind of pooling stand at their defaults.
absl::Status CheckKind(const OpContext& context, const PoolAttributes& pool) {
  if (context.op.kind == OpKind::kAvgPool2d) {
    return CheckNoPair(context, "pool.dilation", pool.dilation, 1,
                       "max_pool2d");
  }
  if (!pool.count_include_pad) {
    return InvalidField(FieldPath(context, "pool.count_include_pad"),
                        "belongs to avg_pool2d", "false", "true");
  }
  if (pool.divisor_override.has_value()) {
    return InvalidField(FieldPath(context, "pool.divisor_override"),
                        "belongs to avg_pool2d",
                        fmt::format("{}", *pool.divisor_override), "none");
  }
  return CheckPair(context, "pool.dilation", pool.dilation, 1, kMaxDim);
}

absl::Status CheckDivisor(const OpContext& context,
                          const PoolAttributes& pool) {
  if (!pool.divisor_override.has_value()) return absl::OkStatus();
  if (*pool.divisor_override == 0) {
    return InvalidField(FieldPath(context, "pool.divisor_override"),
                        "divides by zero", "0", "any number but 0");
  }
  return CheckRange(context, "pool.divisor_override", *pool.divisor_override,
                    -kMaxDim, kMaxDim);
}

absl::Status CheckAttributes(const OpContext& context,
                             const PoolAttributes& pool) {
  if (auto s =
          CheckPair(context, "pool.kernel_size", pool.kernel_size, 1, kMaxDim);
      !s.ok()) {
    return s;
  }
  if (auto s = CheckPair(context, "pool.stride", pool.stride, 1, kMaxDim);
      !s.ok()) {
    return s;
  }
  if (auto s = CheckPadding(context, pool); !s.ok()) return s;
  if (auto s = CheckKind(context, pool); !s.ok()) return s;
  return CheckDivisor(context, pool);
}

Wide FloorDiv(Wide a, Wide b) { return a / b - (a % b < 0 ? 1 : 0); }

// PyTorch's pooling_output_shape (aten/src/ATen/native/Pool.h): with
// ceil_mode, the last window must start inside the input or its left padding.
absl::StatusOr<int64_t> PoolExtent(const OpContext& context,
                                   const PoolAttributes& pool, size_t axis) {
  const Wide extent = context.operands[0]->dims[2 + axis];
  const Wide padding = pool.padding[axis];
  const Wide stride = pool.stride[axis];
  const Wide reach = Wide{pool.dilation[axis]} * (pool.kernel_size[axis] - 1);
  const Wide room = extent + 2 * padding - reach - 1;
  Wide result = FloorDiv(room + (pool.ceil_mode ? stride - 1 : 0), stride) + 1;
  if (pool.ceil_mode && (result - 1) * stride >= extent + padding) --result;
  if (result < 1) {
    return InvalidField(
        FieldPath(context, fmt::format("pool.kernel_size[{}]", axis)),
        fmt::format("the dilated window exceeds the padded input's {}",
                    kImageAxes[axis]),
        fmt::format("{}", reach + 1),
        fmt::format("at most {}", extent + 2 * padding));
  }
  return static_cast<int64_t>(result);
}

}  // namespace

absl::StatusOr<TensorDesc> InferPool(const OpContext& context) {
  const auto& pool = std::get<PoolAttributes>(context.op.attributes);
  if (auto s = CheckRank(context, 0, 4, 4); !s.ok()) return s;
  if (auto s = CheckAttributes(context, pool); !s.ok()) return s;

  TensorDesc result = *context.operands[0];
  for (size_t axis = 0; axis < 2; ++axis) {
    const absl::StatusOr<int64_t> size = PoolExtent(context, pool, axis);
    if (!size.ok()) return size.status();
    result.dims[2 + axis] = *size;
  }
  return result;
}

}  // namespace kiln
