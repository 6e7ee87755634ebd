// What the kernels of eager.cu are told of an operation when they are launched:
// extents, strides and attributes, which other kernels have as constants of the
// compiler. The host writes these structs as they lie in memory, so both sides
// include this file, and members leave no gaps.
#ifndef KILN_KERNEL_SOURCES_EAGER_PARAMETERS_CUH_
#define KILN_KERNEL_SOURCES_EAGER_PARAMETERS_CUH_

namespace kiln {

// Of a block of each of these kernels.
constexpr int kEagerThreads = 256;

// What indices are divided by. Divisions of 64 bits would be calls, around
// which nothing stays in registers.
struct EagerExtent {
  long long size;
  double reciprocal;
};

// How an operand is stored; kNumber: it is a number, not a tensor.
enum class EagerType : int { kNumber, kF32, kF16, kBF16 };

enum class EagerFunction : int {
  kCopy,
  kRoundToF16,
  kRoundToBF16,
  kRelu,
  kLeakyRelu,  // numbers[0]: the negative slope
  kGelu,
  kGeluTanh,
  kTanh,
  kSigmoid,
  kSilu,
  kHardswish,
  kHardsigmoid,
  kClamp,  // to numbers[0] and numbers[1]
  kMish,
  kSoftplus,  // numbers: beta, threshold
  kElu,       // numbers[0]: alpha
  kAbs,
  kNeg,
  kExp,
  kSqrt,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMinimum,
  kMaximum,
};

// strides[0] of an operand that is as large as the result.
constexpr long long kEagerWhole = -1;

struct EagerOperand {
  long long strides[4];  // in elements, by axes of the result; 0: broadcast
  EagerType type;
  float number;
};

struct EagerPointwise {
  long long count;      // elements of the result
  EagerExtent dims[4];  // of the result, 1 in front
  EagerOperand operands[2];
  EagerFunction function;
  EagerType result;
  float numbers[2];
};

enum class EagerNorm : int { kGroup, kBatch, kSoftmax };

struct EagerNormalize {
  long long count;    // elements of the result
  EagerExtent inner;  // elements of the axes behind a softmax's, else 1
  EagerExtent row;    // of kGroup: elements that share statistics; of
                      // kSoftmax: those of its axis
  EagerExtent image;  // elements of a channel, of kGroup and kBatch
  EagerExtent channels;
  EagerNorm norm;
  float eps;
};

enum class EagerReducer : int {
  kSum,
  kMean,
  kAmax,
  kAmin,
  kLogSumExp,
  kMoments,  // results are pairs of a mean and a variance
  kSoftmax,  // results are pairs of the largest element and the denominator
};

// Axes as reduce.cu sees them. Of `steps` elements of each output a block has
// `split_steps`, gridDim.y in all.
struct EagerReduce {
  EagerExtent kept0, reduced0, kept1, reduced1, kept2;
  long long outputs, steps, split_steps;
  EagerReducer reducer;
  int lanes;       // threads that share an output, a power of two
  int lane_pitch;  // from one of them to the next: 1, or threads / lanes
  int splits;
};

// Windows on an image, of a filter or a pooling.
struct EagerWindows {
  EagerExtent output_h, output_w;
  int input_h, input_w;
  int kernel_h, kernel_w, stride_h, stride_w;
  int padding_h, padding_w, dilation_h, dilation_w;
};

// Channels are those of a group. Weights are at group * weight_group +
// output channel * weight_output + input channel * weight_input + tap.
struct EagerConv2d : EagerWindows {
  long long count;  // threads that have work
  long long weight_group, weight_output, weight_input;
  EagerExtent threads_c;  // that share the channels of a pixel of a group
  EagerExtent groups;
  int input_channels, output_channels;
  int outputs_per_thread;  // channels: 8, 4 or 1
  int is_transposed;
};

struct EagerPool2d : EagerWindows {
  long long count;  // elements of the result
  int is_max, counts_padding;
  long long divisor;  // 0: what lies under the window
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_EAGER_PARAMETERS_CUH_
