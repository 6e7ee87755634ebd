#include <fmt/format.h>

#include <algorithm>

#include "jit/plan/errors.h"
#include "jit/plan/infer.h"
#include "jit/plan/validate.h"

namespace kiln {
namespace {

constexpr size_t kInput = 0;
constexpr size_t kWeight = 1;
constexpr size_t kBias = 2;

absl::Status CheckAttributes(const OpContext& context,
                             const ConvAttributes& conv) {
  if (auto s = CheckPair(context, "conv.stride", conv.stride, 1, kMaxDim);
      !s.ok()) {
    return s;
  }
  if (auto s = CheckPair(context, "conv.padding", conv.padding, 0, kMaxDim);
      !s.ok()) {
    return s;
  }
  if (auto s = CheckPair(context, "conv.dilation", conv.dilation, 1, kMaxDim);
      !s.ok()) {
    return s;
  }
  return CheckRange(context, "conv.groups", conv.groups, 1, kMaxDim);
}

// output_padding[i] stays below the larger of stride and dilation; conv2d has
// none.
absl::Status CheckOutputPadding(const OpContext& context,
                                const ConvAttributes& conv) {
  if (context.info.op_class == OpClass::kConv) {
    return CheckNoPair(context, "conv.output_padding", conv.output_padding, 0,
                       "conv_transpose2d");
  }
  for (size_t i = 0; i < 2; ++i) {
    const int64_t limit = std::max(conv.stride[i], conv.dilation[i]) - 1;
    const int64_t value = conv.output_padding[i];
    if (value >= 0 && value <= limit) continue;
    return CheckRange(context, fmt::format("conv.output_padding[{}]", i), value,
                      0, limit);
  }
  return absl::OkStatus();
}

absl::Status CheckRanks(const OpContext& context) {
  if (auto s = CheckRank(context, kInput, 4, 4); !s.ok()) return s;
  return CheckRank(context, kWeight, 4, 4);
}

// `channels`, which `what` names, is a multiple of the groups.
absl::Status CheckGroups(const OpContext& context, int64_t groups,
                         int64_t channels, std::string_view what) {
  if (channels % groups == 0) return absl::OkStatus();
  return InvalidField(FieldPath(context, "conv.groups"),
                      fmt::format("does not divide the {}", what),
                      fmt::format("{}", groups),
                      fmt::format("a divisor of {}", channels));
}

absl::Status CheckWeightDim(const OpContext& context, size_t dim,
                            int64_t wanted, std::string_view meaning) {
  const TensorDesc& weight = *context.operands[kWeight];
  if (weight.dims[dim] == wanted) return absl::OkStatus();
  return InvalidField(OperandPath(context, kWeight),
                      fmt::format("extent {} of the weight of {} must be {}",
                                  dim, context.info.name, meaning),
                      ToString(weight), fmt::format("{}", wanted));
}

// The extent that axis `axis` (0 is height) has after a convolution.
absl::StatusOr<int64_t> ConvExtent(const OpContext& context,
                                   const ConvAttributes& conv, size_t axis) {
  const Wide extent = context.operands[kInput]->dims[2 + axis];
  const Wide kernel = context.operands[kWeight]->dims[2 + axis];
  const Wide padded = extent + 2 * Wide{conv.padding[axis]};
  const Wide reach = Wide{conv.dilation[axis]} * (kernel - 1) + 1;
  if (reach > padded) {
    return InvalidField(
        OperandPath(context, kWeight),
        fmt::format("the dilated kernel {} exceeds the padded input",
                    kImageAxes[axis]),
        fmt::format("{}", reach), fmt::format("at most {}", padded));
  }
  return static_cast<int64_t>((padded - reach) / conv.stride[axis] + 1);
}

// The same after a transposed convolution.
absl::StatusOr<int64_t> ConvTransposeExtent(const OpContext& context,
                                            const ConvAttributes& conv,
                                            size_t axis) {
  const Wide extent = context.operands[kInput]->dims[2 + axis];
  const Wide kernel = context.operands[kWeight]->dims[2 + axis];
  const Wide result =
      (extent - 1) * conv.stride[axis] - 2 * Wide{conv.padding[axis]} +
      Wide{conv.dilation[axis]} * (kernel - 1) + conv.output_padding[axis] + 1;
  if (result < 1 || result > kMaxDim) {
    return InvalidField(
        fmt::format("ops[{}]", context.index),
        fmt::format("the result's {} is out of range", kImageAxes[axis]),
        fmt::format("{}", result), fmt::format("1 to {}", kMaxDim));
  }
  return static_cast<int64_t>(result);
}

// The result of either convolution, whose extents `Extent` gives.
template <typename Extent>
absl::StatusOr<TensorDesc> Result(const OpContext& context,
                                  int64_t out_channels, Extent extent) {
  if (auto s = CheckDims(context, kBias, {out_channels}, "[out_channels]");
      !s.ok()) {
    return s;
  }
  const auto& conv = std::get<ConvAttributes>(context.op.attributes);
  Dims dims = {context.operands[kInput]->dims[0], out_channels};
  for (size_t axis = 0; axis < 2; ++axis) {
    const absl::StatusOr<int64_t> size = extent(context, conv, axis);
    if (!size.ok()) return size.status();
    dims.push_back(*size);
  }
  return TensorDesc{PromoteTypes(context.operands), dims};
}

}  // namespace

absl::StatusOr<TensorDesc> InferConv(const OpContext& context) {
  const auto& conv = std::get<ConvAttributes>(context.op.attributes);
  if (auto s = CheckRanks(context); !s.ok()) return s;
  if (auto s = CheckAttributes(context, conv); !s.ok()) return s;
  if (auto s = CheckOutputPadding(context, conv); !s.ok()) return s;

  const int64_t channels = context.operands[kInput]->dims[1];
  const int64_t out_channels = context.operands[kWeight]->dims[0];
  if (auto s = CheckGroups(context, conv.groups, channels, "channels");
      !s.ok()) {
    return s;
  }
  if (auto s = CheckGroups(context, conv.groups, out_channels, "out_channels");
      !s.ok()) {
    return s;
  }
  if (auto s = CheckWeightDim(context, 1, channels / conv.groups,
                              "channels / groups");
      !s.ok()) {
    return s;
  }
  return Result(context, out_channels, ConvExtent);
}

absl::StatusOr<TensorDesc> InferConvTranspose(const OpContext& context) {
  const auto& conv = std::get<ConvAttributes>(context.op.attributes);
  if (auto s = CheckRanks(context); !s.ok()) return s;
  if (auto s = CheckAttributes(context, conv); !s.ok()) return s;
  if (auto s = CheckOutputPadding(context, conv); !s.ok()) return s;

  const int64_t channels = context.operands[kInput]->dims[1];
  if (auto s = CheckGroups(context, conv.groups, channels, "channels");
      !s.ok()) {
    return s;
  }
  if (auto s = CheckWeightDim(context, 0, channels, "the channels"); !s.ok()) {
    return s;
  }
  const Wide out_channels =
      Wide{context.operands[kWeight]->dims[1]} * conv.groups;
  if (out_channels > kMaxDim) {
    return InvalidField(fmt::format("ops[{}]", context.index),
                        "the result's out_channels is out of range",
                        fmt::format("{}", out_channels),
                        fmt::format("1 to {}", kMaxDim));
  }
  return Result(context, static_cast<int64_t>(out_channels),
                ConvTransposeExtent);
}

}  // namespace kiln
