#include <fmt/format.h>

#include "jit/plan/errors.h"
#include "jit/plan/infer.h"
#include "jit/plan/validate.h"

namespace kiln {
namespace {

// Every operand behind the input is a vector of one entry per channel.
absl::Status CheckChannelVectors(const OpContext& context, int64_t channels) {
  for (size_t i = 1; i < context.operands.size(); ++i) {
    if (auto s = CheckDims(context, i, {channels}, "[channels]"); !s.ok()) {
      return s;
    }
  }
  return absl::OkStatus();
}

}  // namespace

// The result has the input's type, whatever the type of the affine vectors:
// PyTorch's mixed-type norms.
absl::StatusOr<TensorDesc> InferGroupNorm(const OpContext& context) {
  const auto& norm = std::get<GroupNormAttributes>(context.op.attributes);
  if (auto s = CheckRank(context, 0, 2, kMaxRank); !s.ok()) return s;
  const TensorDesc& input = *context.operands[0];
  const int64_t channels = input.dims[1];

  if (auto s = CheckRange(context, "group_norm.num_groups", norm.num_groups, 1,
                          kMaxDim);
      !s.ok()) {
    return s;
  }
  if (channels % norm.num_groups != 0) {
    return InvalidField(FieldPath(context, "group_norm.num_groups"),
                        "does not divide the channels",
                        fmt::format("{}", norm.num_groups),
                        fmt::format("a divisor of {}", channels));
  }
  if (auto s = CheckEps(context, "group_norm.eps", norm.eps); !s.ok()) {
    return s;
  }
  if (auto s = CheckChannelVectors(context, channels); !s.ok()) return s;
  return input;
}

absl::StatusOr<TensorDesc> InferBatchNorm(const OpContext& context) {
  const auto& norm = std::get<BatchNormAttributes>(context.op.attributes);
  if (auto s = CheckRank(context, 0, 2, kMaxRank); !s.ok()) return s;
  const TensorDesc& input = *context.operands[0];
  if (auto s = CheckEps(context, "batch_norm.eps", norm.eps); !s.ok()) {
    return s;
  }
  if (norm.eps == 0.0f) {
    return InvalidField(FieldPath(context, "batch_norm.eps"),
                        "is out of range, as in PyTorch", "0",
                        "finite and above 0");
  }
  if (auto s = CheckChannelVectors(context, input.dims[1]); !s.ok()) return s;
  return input;
}

}  // namespace kiln
