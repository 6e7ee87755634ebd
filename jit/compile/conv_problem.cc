#include "jit/compile/conv_problem.h"

#include <algorithm>

#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// Columns of the filter that an octet has room for.
int64_t MostColumns(const ConvProblem& problem) {
  if (problem.has_insert()) return 1;
  return std::max<int64_t>(8 / problem.group_inputs(), 1);
}

// Of a filter of `width` columns at most `most`, so that all octets have as
// many.
int64_t WholeColumns(int64_t width, int64_t most) {
  int64_t columns = std::min(most, width);
  while (width % columns != 0) --columns;
  return columns;
}

// The same where the last octet may begin early. What it has in common with the
// one before has half its weight in each: exactly, as far as scaled weights are
// exact (docs/ops.md). The smallest of f16 and bf16 have no half.
int64_t EvenColumns(int64_t width, int64_t most) {
  return CeilDiv(width, CeilDiv(width, most));
}

// With groups of at most so many channels, of as many groups each as there may
// be.
ConvProblem Joined(const ConvProblem& problem, int64_t most) {
  const int64_t own = std::max(problem.group_inputs(), problem.group_outputs());
  int64_t count = std::clamp(most / own, int64_t{1}, problem.groups);
  while (problem.groups % count != 0) --count;
  ConvProblem joined = problem;
  joined.groups /= count;
  joined.joined = count;
  return joined;
}

}  // namespace

// Four numbers of 32 bits in each column leave producers without registers.
bool ConvProblem::pairs_columns() const {
  const bool are_few = has_halves() || group_inputs() == 3;
  return are_few && MostColumns(*this) == 2 && kernel[1] % 2 == 1 &&
         kernel[1] > 1 && stride[1] == 2 && dilation[1] == 1 &&
         padding[1] % 2 != 0 && input[3] % 2 == 0 && !lies_apart();
}

int64_t ConvProblem::octet_columns() const {
  const int64_t most = MostColumns(*this);
  if (pairs_columns()) return most;
  return takes_as_stored() ? WholeColumns(kernel[1], most)
                           : EvenColumns(kernel[1], most);
}

// No divisor of the width is larger than these columns and fits in an octet.
bool ConvProblem::scales_few_halves() const {
  if (!has_halves()) return false;
  return kernel[1] % EvenColumns(kernel[1], MostColumns(*this)) != 0 &&
         !pairs_columns();
}

std::vector<ConvProblem> JoinedProblems(const ConvProblem& problem) {
  constexpr int64_t kFewestInputs = 8;
  std::vector<ConvProblem> problems = {problem};
  if (problem.has_insert() || problem.wraps_rows || problem.split_pixels > 0) {
    return problems;
  }
  for (const int64_t channels : {16, 32, 64}) {
    const ConvProblem joined = Joined(problem, channels);
    if (joined.joined > problems.back().joined &&
        joined.group_inputs() >= kFewestInputs) {
      problems.push_back(joined);
    }
  }
  return problems;
}

Dims4 ConvProblem::result() const {
  if (!has_channel_phases()) return output;
  return {output[0], output[1] / (channel_phases[0] * channel_phases[1]),
          result_extent[0], result_extent[1]};
}

std::optional<ConvProblem> PhasesAsChannels(const ConvProblem& problem) {
  constexpr int64_t kFewestInputs = 16;
  constexpr int64_t kFewestPhases = 3;
  if (!problem.transposed || problem.groups > 1 ||
      problem.insert[0] * problem.insert[1] < kFewestPhases ||
      problem.lies_apart() || problem.input_is_laid || problem.has_one_tap() ||
      problem.input[1] < kFewestInputs) {
    return std::nullopt;
  }
  ConvProblem ordinary = problem;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t stride = problem.insert[i];
    const bool is_whole = problem.kernel[i] % stride == 0;
    if (!is_whole || problem.dilation[i] != 1) return std::nullopt;
    const int64_t padding = problem.kernel[i] - 1 - problem.padding[i];
    if (padding < 0) return std::nullopt;
    const int64_t taps = problem.kernel[i] / stride;
    const int64_t extent = problem.output[2 + i];
    ordinary.kernel[i] = taps;
    ordinary.insert[i] = 1;
    ordinary.padding[i] = taps - 1 - padding / stride;
    ordinary.channel_phases[i] = stride;
    ordinary.before_result[i] = padding % stride;
    ordinary.result_extent[i] = extent;
    ordinary.output[1] *= stride;
    ordinary.output[2 + i] = CeilDiv(extent + padding % stride, stride);
  }
  return ordinary;
}

bool MayLayLines(const ConvProblem& problem) {
  constexpr int64_t kFewestInputs = 64;
  constexpr int64_t kFewestOutputs = 128;
  const bool is_covered =
      problem.output[2] == problem.input[2] * problem.insert[0] &&
      problem.output[3] == problem.input[3] * problem.insert[1];
  return !problem.takes_as_stored() && problem.has_one_tap() && is_covered &&
         problem.groups == 1 && problem.joined == 1 && !problem.wraps_rows &&
         problem.split_pixels == 0 && problem.input[1] >= kFewestInputs &&
         problem.output[1] * problem.taps() >= kFewestOutputs;
}

bool SplitsImages(const LoweredPlan& plan, const Node& conv) {
  const int input = ValueOf(conv.operands[0]);
  return plan.values[input].desc.dims[0] !=
         plan.values[conv.results[0]].desc.dims[0];
}

ConvProblem ConvProblemOf(const LoweredPlan& plan, const Node& conv) {
  const auto& attributes = std::get<ConvAttributes>(conv.attributes);
  const LoweredValue& input_value = plan.values[ValueOf(conv.operands[0])];
  const TensorDesc& input = input_value.desc;
  const TensorDesc& weight = plan.values[ValueOf(conv.operands[1])].desc;
  ConvProblem problem;
  problem.input = AlignDims(input.dims);
  problem.output = AlignDims(plan.values[conv.results[0]].desc.dims);
  if (SplitsImages(plan, conv)) {
    problem.split_pixels = problem.output[2] * problem.output[3];
    problem.output[0] = 1;
  }
  if (conv.image) {
    for (Dims4* dims : {&problem.input, &problem.output}) {
      std::copy(conv.image->begin(), conv.image->end(), dims->begin() + 2);
    }
  }
  problem.groups = attributes.groups;
  problem.kernel = {weight.dims[2], weight.dims[3]};
  problem.dilation = attributes.dilation;
  problem.transposed = conv.kind == NodeKind::kConvTranspose2d;
  problem.wraps_rows = conv.wraps_rows;
  problem.columns_apart = conv.columns_apart;
  problem.input_type = input.dtype;
  problem.input_is_laid = input_value.laid;
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
