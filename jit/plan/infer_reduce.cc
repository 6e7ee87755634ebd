#include <fmt/format.h>

#include <vector>

#include "jit/plan/errors.h"
#include "jit/plan/infer.h"
#include "jit/plan/validate.h"

namespace kiln {
namespace {

// reduced[d]: dimension d of the input is named by `dim`.
absl::StatusOr<std::vector<bool>> ReducedDims(const OpContext& context,
                                              const ReduceAttributes& reduce,
                                              int rank) {
  std::vector<bool> reduced(rank > 0 ? rank : 1, reduce.dim.empty());
  for (size_t i = 0; i < reduce.dim.size(); ++i) {
    const std::string field = fmt::format("reduce.dim[{}]", i);
    const absl::StatusOr<int64_t> dim =
        WrapDim(context, field, reduce.dim[i], rank);
    if (!dim.ok()) return dim.status();
    if (reduced[*dim]) {
      return InvalidField(
          FieldPath(context, field), "names a dimension a second time",
          fmt::format("{}", reduce.dim[i]), "each dimension once");
    }
    reduced[*dim] = true;
  }
  return reduced;
}

}  // namespace

absl::StatusOr<TensorDesc> InferReduce(const OpContext& context) {
  const auto& reduce = std::get<ReduceAttributes>(context.op.attributes);
  const TensorDesc& input = *context.operands[0];
  const int rank = static_cast<int>(input.dims.size());
  const absl::StatusOr<std::vector<bool>> reduced =
      ReducedDims(context, reduce, rank);
  if (!reduced.ok()) return reduced.status();

  TensorDesc result{input.dtype, {}};
  for (int i = 0; i < rank; ++i) {
    if (!(*reduced)[i]) {
      result.dims.push_back(input.dims[i]);
    } else if (reduce.keepdim) {
      result.dims.push_back(1);
    }
  }
  return result;
}

absl::StatusOr<TensorDesc> InferSoftmax(const OpContext& context) {
  const auto& softmax = std::get<SoftmaxAttributes>(context.op.attributes);
  const TensorDesc& input = *context.operands[0];
  const absl::StatusOr<int64_t> dim = WrapDim(
      context, "softmax.dim", softmax.dim, static_cast<int>(input.dims.size()));
  if (!dim.ok()) return dim.status();
  return input;
}

}  // namespace kiln
