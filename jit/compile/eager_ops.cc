#include "jit/compile/eager_ops.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// Steps of a thread that are worth a share of their own.
constexpr int64_t kMinSteps = 16;
constexpr int64_t kMaxSplits = 256;
// Threads side by side on neighbouring outputs: whole lines of memory.
constexpr int64_t kMaxColumns = 32;
// Blocks for each multiprocessor.
constexpr int64_t kBlocksPerSm = 4;

EagerFunction ClampFunction(const ClampAttributes& clamp, float (&numbers)[2]) {
  numbers[0] = clamp.min.value_or(-HUGE_VALF);
  numbers[1] = clamp.max.value_or(HUGE_VALF);
  // A NaN that is the only bound bounds nothing, as in PyTorch.
  const bool has_both = clamp.min.has_value() && clamp.max.has_value();
  const bool has_nan = std::isnan(numbers[0]) || std::isnan(numbers[1]);
  return has_nan && !has_both ? EagerFunction::kCopy : EagerFunction::kClamp;
}

// Of ops without attributes.
EagerFunction PlainFunction(OpKind op) {
  switch (op) {
    case OpKind::kRelu:
      return EagerFunction::kRelu;
    case OpKind::kTanh:
      return EagerFunction::kTanh;
    case OpKind::kSigmoid:
      return EagerFunction::kSigmoid;
    case OpKind::kSilu:
      return EagerFunction::kSilu;
    case OpKind::kHardswish:
      return EagerFunction::kHardswish;
    case OpKind::kHardsigmoid:
      return EagerFunction::kHardsigmoid;
    case OpKind::kMish:
      return EagerFunction::kMish;
    case OpKind::kAbs:
      return EagerFunction::kAbs;
    case OpKind::kNeg:
      return EagerFunction::kNeg;
    case OpKind::kExp:
      return EagerFunction::kExp;
    case OpKind::kSqrt:
      return EagerFunction::kSqrt;
    case OpKind::kAdd:
      return EagerFunction::kAdd;
    case OpKind::kSub:
      return EagerFunction::kSub;
    case OpKind::kMul:
      return EagerFunction::kMul;
    case OpKind::kDiv:
      return EagerFunction::kDiv;
    case OpKind::kMinimum:
      return EagerFunction::kMinimum;
    case OpKind::kMaximum:
      return EagerFunction::kMaximum;
    default:
      return EagerFunction::kCopy;
  }
}

EagerFunction RoundingTo(DataType type) {
  return type == DataType::kF16    ? EagerFunction::kRoundToF16
         : type == DataType::kBF16 ? EagerFunction::kRoundToBF16
                                   : EagerFunction::kCopy;
}

EagerFunction FunctionOf(const Op& op, float (&numbers)[2]) {
  if (const auto* leaky = std::get_if<LeakyReluAttributes>(&op.attributes)) {
    numbers[0] = leaky->negative_slope;
    return EagerFunction::kLeakyRelu;
  }
  if (const auto* gelu = std::get_if<GeluAttributes>(&op.attributes)) {
    return gelu->approximate == GeluApproximate::kTanh
               ? EagerFunction::kGeluTanh
               : EagerFunction::kGelu;
  }
  if (const auto* clamp = std::get_if<ClampAttributes>(&op.attributes)) {
    return ClampFunction(*clamp, numbers);
  }
  if (const auto* softplus = std::get_if<SoftplusAttributes>(&op.attributes)) {
    numbers[0] = softplus->beta;
    numbers[1] = softplus->threshold;
    return EagerFunction::kSoftplus;
  }
  if (const auto* elu = std::get_if<EluAttributes>(&op.attributes)) {
    numbers[0] = elu->alpha;
    return EagerFunction::kElu;
  }
  if (const auto* cast = std::get_if<CastAttributes>(&op.attributes)) {
    return RoundingTo(cast->dtype);
  }
  return PlainFunction(op.kind);
}

EagerReducer ReducerOf(OpKind op) {
  switch (op) {
    case OpKind::kMean:
      return EagerReducer::kMean;
    case OpKind::kAmax:
      return EagerReducer::kAmax;
    case OpKind::kAmin:
      return EagerReducer::kAmin;
    case OpKind::kLogSumExp:
      return EagerReducer::kLogSumExp;
    case OpKind::kGroupNorm:
      return EagerReducer::kMoments;
    case OpKind::kSoftmax:
      return EagerReducer::kSoftmax;
    default:
      return EagerReducer::kSum;
  }
}

// Elements of one channel of one sample.
int64_t ChannelSize(const Dims& dims) {
  return NumElements(dims) / (dims[0] * dims[1]);
}

EagerExtent ExtentOf(int64_t size) {
  return {size, 1.0 / static_cast<double>(size)};
}

// `attributes`: those of a convolution or a pooling.
template <typename Attributes>
void SetWindows(const Attributes& attributes, const Pair& kernel,
                const Dims& input, const Dims& result, EagerWindows* windows) {
  windows->output_h = ExtentOf(result[2]);
  windows->output_w = ExtentOf(result[3]);
  windows->input_h = static_cast<int>(input[2]);
  windows->input_w = static_cast<int>(input[3]);
  windows->kernel_h = static_cast<int>(kernel[0]);
  windows->kernel_w = static_cast<int>(kernel[1]);
  windows->stride_h = static_cast<int>(attributes.stride[0]);
  windows->stride_w = static_cast<int>(attributes.stride[1]);
  windows->padding_h = static_cast<int>(attributes.padding[0]);
  windows->padding_w = static_cast<int>(attributes.padding[1]);
  windows->dilation_h = static_cast<int>(attributes.dilation[0]);
  windows->dilation_w = static_cast<int>(attributes.dilation[1]);
}

// The greatest power of two up to `count`.
int PowerUpTo(int64_t count) {
  return static_cast<int>(std::bit_floor(static_cast<uint64_t>(count)));
}

}  // namespace

EagerType EagerTypeOf(DataType type) {
  return type == DataType::kF16    ? EagerType::kF16
         : type == DataType::kBF16 ? EagerType::kBF16
                                   : EagerType::kF32;
}

EagerPointwise EagerPointwiseOf(const Op& op, const Dims& result) {
  EagerPointwise p = {};
  p.count = NumElements(result);
  std::ranges::transform(AlignDims(result), p.dims, ExtentOf);
  p.function = FunctionOf(op, p.numbers);
  p.result = EagerType::kF32;
  return p;
}

EagerOperand EagerOperandOf(const Dims& dims, DataType type,
                            const Dims& result) {
  EagerOperand operand = {};
  operand.type = EagerTypeOf(type);
  if (dims == result) {
    operand.strides[0] = kEagerWhole;
    return operand;
  }
  const Dims4 aligned = AlignDims(dims);
  int64_t stride = 1;
  for (int axis = 3; axis >= 0; --axis) {
    operand.strides[axis] = aligned[axis] == 1 ? 0 : stride;
    stride *= aligned[axis];
  }
  return operand;
}

EagerNormalize EagerNormalizeOf(const Op& op, const Dims& dims) {
  EagerNormalize p = {};
  p.count = NumElements(dims);
  p.inner = p.row = p.image = p.channels = ExtentOf(1);
  if (op.kind == OpKind::kSoftmax) {
    Node node;
    node.op = op.kind;
    node.attributes = op.attributes;
    const ReduceView view = ViewOf(node, dims);
    p.norm = EagerNorm::kSoftmax;
    p.inner = ExtentOf(view.kept1);
    p.row = ExtentOf(view.reduced0);
    return p;
  }
  p.image = ExtentOf(ChannelSize(dims));
  p.channels = ExtentOf(dims[1]);
  if (const auto* group = std::get_if<GroupNormAttributes>(&op.attributes)) {
    p.norm = EagerNorm::kGroup;
    p.row = ExtentOf(dims[1] / group->num_groups * p.image.size);
    p.eps = group->eps;
  } else {
    p.norm = EagerNorm::kBatch;
    p.eps = std::get<BatchNormAttributes>(op.attributes).eps;
  }
  return p;
}

EagerReduce EagerReduceOf(const Op& op, const Dims& dims,
                          const Target& target) {
  Node node;
  node.op = op.kind;
  node.attributes = op.attributes;
  const ReduceView view = ViewOf(node, dims);
  EagerReduce p = {};
  p.kept0 = ExtentOf(view.kept0);
  p.reduced0 = ExtentOf(view.reduced0);
  p.kept1 = ExtentOf(view.kept1);
  p.reduced1 = ExtentOf(view.reduced1);
  p.kept2 = ExtentOf(view.kept2);
  p.outputs = view.outputs();
  p.steps = view.steps();
  p.reducer = ReducerOf(op.kind);
  const bool is_row = view.reduces_innermost();
  const int64_t most_lanes =
      is_row ? kEagerThreads
             : kEagerThreads / PowerUpTo(std::min(view.run(), kMaxColumns));
  p.lanes = PowerUpTo(std::min<int64_t>(p.steps, most_lanes));
  p.lane_pitch = is_row ? 1 : kEagerThreads / p.lanes;

  const int64_t blocks = CeilDiv(p.outputs * p.lanes, kEagerThreads);
  const int64_t wanted = CeilDiv(kBlocksPerSm * target.sm_count, blocks);
  const int64_t most = CeilDiv(p.steps, p.lanes * kMinSteps);
  const int64_t splits = std::min({wanted, most, kMaxSplits});
  p.split_steps = CeilDiv(p.steps, splits);
  p.splits = static_cast<int>(CeilDiv(p.steps, p.split_steps));
  return p;
}

EagerConv2d EagerConv2dOf(const Op& op, const Dims& input, const Dims& weight,
                          const Dims& result) {
  const auto& conv = std::get<ConvAttributes>(op.attributes);
  const int64_t taps = weight[2] * weight[3];
  EagerConv2d p = {};
  p.is_transposed = op.kind == OpKind::kConvTranspose2d ? 1 : 0;
  p.groups = ExtentOf(conv.groups);
  p.input_channels = static_cast<int>(input[1] / conv.groups);
  p.output_channels = static_cast<int>(result[1] / conv.groups);
  // A weight of conv2d is [outputs, inputs of a group, h, w], one of
  // conv_transpose2d [inputs, outputs of a group, h, w].
  p.weight_output = p.is_transposed != 0 ? taps : p.input_channels * taps;
  p.weight_input = p.is_transposed != 0 ? p.output_channels * taps : taps;
  p.weight_group = int64_t{p.input_channels} * p.output_channels * taps;
  p.outputs_per_thread = p.output_channels % 8 == 0   ? 8
                         : p.output_channels % 4 == 0 ? 4
                                                      : 1;
  p.threads_c = ExtentOf(p.output_channels / p.outputs_per_thread);
  p.count = NumElements(result) / p.outputs_per_thread;
  SetWindows(conv, {weight[2], weight[3]}, input, result, &p);
  return p;
}

EagerPool2d EagerPool2dOf(const Op& op, const Dims& input, const Dims& result) {
  const auto& pool = std::get<PoolAttributes>(op.attributes);
  EagerPool2d p = {};
  p.count = NumElements(result);
  SetWindows(pool, pool.kernel_size, input, result, &p);
  p.is_max = op.kind == OpKind::kMaxPool2d ? 1 : 0;
  p.counts_padding = pool.count_include_pad ? 1 : 0;
  p.divisor = pool.divisor_override.value_or(0);
  return p;
}

}  // namespace kiln
