#ifndef KILN_JIT_PLAN_OP_H_
#define KILN_JIT_PLAN_OP_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "jit/plan/data_type.h"

namespace kiln {

// Every operation of the plan language, by PyTorch's name. The numbers are
// part of the wire schema and of cache keys: never reuse one.
enum class OpKind : uint16_t {
  // Operands: input, weight, bias (optional).
  kConv2d = 1,           // weight [out_channels, channels / groups, kh, kw]
  kConvTranspose2d = 2,  // weight [channels, out_channels / groups, kh, kw]
  // Operands: input, weight (optional), bias (optional), each [channels].
  kGroupNorm = 10,
  // Operands: input, running_mean, running_var, weight (optional), bias
  // (optional), each [channels]. Inference only.
  kBatchNorm = 11,
  // Operands: input.
  kMaxPool2d = 20,
  kAvgPool2d = 21,
  kSum = 30,
  kMean = 31,
  kAmax = 32,
  kAmin = 33,
  kLogSumExp = 34,
  kSoftmax = 35,
  kRelu = 50,
  kLeakyRelu = 51,
  kGelu = 52,
  kTanh = 53,
  kSigmoid = 54,
  kSilu = 55,
  kHardswish = 56,
  kHardsigmoid = 57,
  kHardtanh = 58,
  kClamp = 59,
  kMish = 60,
  kSoftplus = 61,
  kElu = 62,
  kAbs = 63,
  kNeg = 64,
  kExp = 65,
  kSqrt = 66,
  // Operands: input, other, broadcast against each other. Either may be a
  // constant, not both.
  kAdd = 80,
  kSub = 81,
  kMul = 82,
  kDiv = 83,
  kMinimum = 84,
  kMaximum = 85,
  // Operands: input. Rounds to the nearest value of the type, ties to even.
  kCast = 100,
};

// A pair of spatial extents, {height, width}.
using Pair = std::array<int64_t, 2>;

struct ConvAttributes {
  Pair stride = {1, 1};
  Pair padding = {0, 0};
  Pair output_padding = {0, 0};  // conv_transpose2d only
  Pair dilation = {1, 1};
  int64_t groups = 1;
  friend bool operator==(const ConvAttributes&,
                         const ConvAttributes&) = default;
};

struct GroupNormAttributes {
  int64_t num_groups = 1;
  float eps = 1e-5f;
  friend bool operator==(const GroupNormAttributes&,
                         const GroupNormAttributes&) = default;
};

struct BatchNormAttributes {
  float eps = 1e-5f;
  friend bool operator==(const BatchNormAttributes&,
                         const BatchNormAttributes&) = default;
};

struct PoolAttributes {
  Pair kernel_size = {1, 1};
  Pair stride = {1, 1};  // text and wire default: kernel_size
  Pair padding = {0, 0};
  Pair dilation = {1, 1};  // max_pool2d only
  bool ceil_mode = false;
  bool count_include_pad = true;            // avg_pool2d only
  std::optional<int64_t> divisor_override;  // avg_pool2d only
  friend bool operator==(const PoolAttributes&,
                         const PoolAttributes&) = default;
};

// sum, mean, amax, amin, logsumexp. `dim` is sorted, without duplicates, each
// in [0, rank), once the plan is canonical; a client may count from the end.
struct ReduceAttributes {
  std::vector<int64_t> dim;  // empty: all dimensions
  bool keepdim = false;
  friend bool operator==(const ReduceAttributes&,
                         const ReduceAttributes&) = default;
};

struct SoftmaxAttributes {
  int64_t dim = -1;
  friend bool operator==(const SoftmaxAttributes&,
                         const SoftmaxAttributes&) = default;
};

struct LeakyReluAttributes {
  float negative_slope = 0.01f;
  friend bool operator==(const LeakyReluAttributes&,
                         const LeakyReluAttributes&) = default;
};

enum class GeluApproximate : uint8_t { kNone = 0, kTanh = 1 };

struct GeluAttributes {
  GeluApproximate approximate = GeluApproximate::kNone;
  friend bool operator==(const GeluAttributes&,
                         const GeluAttributes&) = default;
};

// hardtanh: both bounds, -1 and 1 by default. clamp: at least one.
struct ClampAttributes {
  std::optional<float> min;
  std::optional<float> max;
  friend bool operator==(const ClampAttributes&,
                         const ClampAttributes&) = default;
};

struct SoftplusAttributes {
  float beta = 1.0f;
  float threshold = 20.0f;
  friend bool operator==(const SoftplusAttributes&,
                         const SoftplusAttributes&) = default;
};

struct EluAttributes {
  float alpha = 1.0f;
  friend bool operator==(const EluAttributes&, const EluAttributes&) = default;
};

struct CastAttributes {
  DataType dtype = DataType::kF32;
  friend bool operator==(const CastAttributes&,
                         const CastAttributes&) = default;
};

// monostate for ops without attributes. The alternative held is fixed by the
// op's kind; ValidatePlan refuses any other.
using Attributes =
    std::variant<std::monostate, ConvAttributes, GroupNormAttributes,
                 BatchNormAttributes, PoolAttributes, ReduceAttributes,
                 SoftmaxAttributes, LeakyReluAttributes, GeluAttributes,
                 ClampAttributes, SoftplusAttributes, EluAttributes,
                 CastAttributes>;

// Index of a value in a plan: inputs first, in order, then op results.
struct ValueId {
  int32_t index = 0;
  friend bool operator==(ValueId, ValueId) = default;
};

// What stands in an operand's place: nothing (an optional operand left out),
// a value, or a constant (binary ops only), which is an f32.
using Operand = std::variant<std::monostate, ValueId, float>;

// One operation. `operands` holds one entry per operand of the kind, in the
// order listed at OpKind, optional ones included.
struct Op {
  OpKind kind = OpKind::kRelu;
  std::string name;  // of its result; only for people, not part of the key
  std::vector<Operand> operands;
  Attributes attributes;

  friend bool operator==(const Op&, const Op&) = default;
};

}  // namespace kiln

#endif  // KILN_JIT_PLAN_OP_H_
