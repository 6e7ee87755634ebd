#include "jit/compile/conv_problem.h"

#include <algorithm>

#include "jit/compile/rounding.h"

namespace kiln {

int64_t ConvProblem::octet_columns() const {
  if (insert != Pair{1, 1}) return 1;
  const int64_t width = kernel[1];
  const int64_t most = 8 / group_inputs();
  if (most < 2) return 1;
  // The last octet may begin early. What it has in common with the one before
  // has half its weight in each: exactly, since f32 weights are scaled. The
  // smallest of f16 and bf16 have no half.
  if (!takes_as_stored()) return CeilDiv(width, CeilDiv(width, most));
  int64_t columns = std::min(most, width);
  while (width % columns != 0) --columns;
  return columns;
}

ConvProblem ConvProblemOf(const LoweredPlan& plan, const Node& conv) {
  const auto& attributes = std::get<ConvAttributes>(conv.attributes);
  const TensorDesc& input = plan.values[ValueOf(conv.operands[0])].desc;
  const TensorDesc& weight = plan.values[ValueOf(conv.operands[1])].desc;
  ConvProblem problem;
  problem.input = AlignDims(input.dims);
  problem.output = AlignDims(plan.values[conv.results[0]].desc.dims);
  problem.groups = attributes.groups;
  problem.kernel = {weight.dims[2], weight.dims[3]};
  problem.dilation = attributes.dilation;
  problem.transposed = conv.kind == NodeKind::kConvTranspose2d;
  problem.input_type = input.dtype;
  problem.weight_type = weight.dtype;
  for (size_t i = 0; i < 2; ++i) {
    if (problem.transposed) {
      problem.insert[i] = attributes.stride[i];
      problem.padding[i] = attributes.dilation[i] * (problem.kernel[i] - 1) -
                           attributes.padding[i];
    } else {
      problem.stride[i] = attributes.stride[i];
      problem.padding[i] = attributes.padding[i];
    }
  }
  return problem;
}

}  // namespace kiln
