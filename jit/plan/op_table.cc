#include "jit/plan/op_table.h"

#include <array>
#include <type_traits>

namespace kiln {
namespace {

// Index of alternative T in Attributes.
template <typename T, size_t kIndex = 0>
constexpr size_t IndexOf() {
  using Alternative = std::variant_alternative_t<kIndex, Attributes>;
  if constexpr (std::is_same_v<Alternative, T>) {
    return kIndex;
  } else {
    return IndexOf<T, kIndex + 1>();
  }
}

constexpr size_t kNone = IndexOf<std::monostate>();
constexpr size_t kConv = IndexOf<ConvAttributes>();
constexpr size_t kPool = IndexOf<PoolAttributes>();
constexpr size_t kReduce = IndexOf<ReduceAttributes>();
constexpr size_t kBounds = IndexOf<ClampAttributes>();

constexpr OperandInfo kUnaryOperands[] = {{"input"}};
constexpr OperandInfo kBinaryOperands[] = {{"input"}, {"other"}};
constexpr OperandInfo kConvOperands[] = {{"input"}, {"weight"}, {"bias", true}};
constexpr OperandInfo kGroupNormOperands[] = {
    {"input"}, {"weight", true}, {"bias", true}};
constexpr OperandInfo kBatchNormOperands[] = {{"input"},
                                              {"running_mean"},
                                              {"running_var"},
                                              {"weight", true},
                                              {"bias", true}};

constexpr OpInfo Unary(OpKind kind, std::string_view name,
                       size_t attributes = kNone) {
  return {kind, name, "", OpClass::kUnary, kUnaryOperands, attributes};
}

constexpr OpInfo Binary(OpKind kind, std::string_view name) {
  return {kind, name, "", OpClass::kBinary, kBinaryOperands, kNone};
}

constexpr OpInfo Reduce(OpKind kind, std::string_view name,
                        std::string_view alias = "") {
  return {kind, name, alias, OpClass::kReduce, kUnaryOperands, kReduce};
}

constexpr OpInfo Pool(OpKind kind, std::string_view name) {
  return {kind, name, "", OpClass::kPool, kUnaryOperands, kPool};
}

constexpr OpInfo kOps[] = {
    {OpKind::kConv2d, "conv2d", "", OpClass::kConv, kConvOperands, kConv},
    {OpKind::kConvTranspose2d, "conv_transpose2d", "", OpClass::kConvTranspose,
     kConvOperands, kConv},
    {OpKind::kGroupNorm, "group_norm", "", OpClass::kGroupNorm,
     kGroupNormOperands, IndexOf<GroupNormAttributes>()},
    {OpKind::kBatchNorm, "batch_norm", "", OpClass::kBatchNorm,
     kBatchNormOperands, IndexOf<BatchNormAttributes>()},
    Pool(OpKind::kMaxPool2d, "max_pool2d"),
    Pool(OpKind::kAvgPool2d, "avg_pool2d"),
    Reduce(OpKind::kSum, "sum"),
    Reduce(OpKind::kMean, "mean"),
    Reduce(OpKind::kAmax, "amax", "max"),
    Reduce(OpKind::kAmin, "amin", "min"),
    Reduce(OpKind::kLogSumExp, "logsumexp"),
    {OpKind::kSoftmax, "softmax", "", OpClass::kSoftmax, kUnaryOperands,
     IndexOf<SoftmaxAttributes>()},
    Unary(OpKind::kRelu, "relu"),
    Unary(OpKind::kLeakyRelu, "leaky_relu", IndexOf<LeakyReluAttributes>()),
    Unary(OpKind::kGelu, "gelu", IndexOf<GeluAttributes>()),
    Unary(OpKind::kTanh, "tanh"),
    Unary(OpKind::kSigmoid, "sigmoid"),
    Unary(OpKind::kSilu, "silu"),
    Unary(OpKind::kHardswish, "hardswish"),
    Unary(OpKind::kHardsigmoid, "hardsigmoid"),
    Unary(OpKind::kHardtanh, "hardtanh", kBounds),
    Unary(OpKind::kClamp, "clamp", kBounds),
    Unary(OpKind::kMish, "mish"),
    Unary(OpKind::kSoftplus, "softplus", IndexOf<SoftplusAttributes>()),
    Unary(OpKind::kElu, "elu", IndexOf<EluAttributes>()),
    Unary(OpKind::kAbs, "abs"),
    Unary(OpKind::kNeg, "neg"),
    Unary(OpKind::kExp, "exp"),
    Unary(OpKind::kSqrt, "sqrt"),
    Binary(OpKind::kAdd, "add"),
    Binary(OpKind::kSub, "sub"),
    Binary(OpKind::kMul, "mul"),
    Binary(OpKind::kDiv, "div"),
    Binary(OpKind::kMinimum, "minimum"),
    Binary(OpKind::kMaximum, "maximum"),
    {OpKind::kCast, "cast", "", OpClass::kCast, kUnaryOperands,
     IndexOf<CastAttributes>()},
};

constexpr std::array<std::string_view, std::variant_size_v<Attributes>>
    kAttributesFields = {"none", "conv",   "group_norm", "batch_norm",
                         "pool", "reduce", "softmax",    "leaky_relu",
                         "gelu", "clamp",  "softplus",   "elu",
                         "cast"};

template <size_t kIndex = 0>
Attributes MakeAlternative(size_t index) {
  if constexpr (kIndex < std::variant_size_v<Attributes>) {
    if (index == kIndex) return Attributes(std::in_place_index<kIndex>);
    return MakeAlternative<kIndex + 1>(index);
  } else {
    return std::monostate();
  }
}

}  // namespace

std::span<const OpInfo> AllOps() { return kOps; }

const OpInfo* FindOp(OpKind kind) {
  for (const OpInfo& info : kOps) {
    if (info.kind == kind) return &info;
  }
  return nullptr;
}

const OpInfo* FindOpByName(std::string_view name) {
  if (name.empty()) return nullptr;
  for (const OpInfo& info : kOps) {
    if (info.name == name || info.alias == name) return &info;
  }
  return nullptr;
}

std::string_view OpName(OpKind kind) {
  const OpInfo* const info = FindOp(kind);
  return info == nullptr ? "unknown" : info->name;
}

Attributes DefaultAttributes(const OpInfo& info) {
  if (info.kind == OpKind::kHardtanh) return ClampAttributes{-1.0f, 1.0f};
  return MakeAlternative(info.attributes);
}

std::string_view AttributesFieldName(size_t index) {
  return index < kAttributesFields.size() ? kAttributesFields[index]
                                          : "unknown";
}

}  // namespace kiln
