#include "jit/compile/pointwise_call.h"

#include <cmath>
#include <string_view>

#include "fmt/format.h"
#include "jit/compile/element_code.h"

namespace kiln {
namespace {

// The function of math.cuh that takes the operands and nothing else; empty for
// ops with attributes.
std::string_view PlainFunction(OpKind op) {
  switch (op) {
    case OpKind::kRelu:
      return "Relu";
    case OpKind::kTanh:
      return "Tanh";
    case OpKind::kSigmoid:
      return "Sigmoid";
    case OpKind::kSilu:
      return "Silu";
    case OpKind::kHardswish:
      return "Hardswish";
    case OpKind::kHardsigmoid:
      return "Hardsigmoid";
    case OpKind::kMish:
      return "Mish";
    case OpKind::kAbs:
      return "Abs";
    case OpKind::kNeg:
      return "Neg";
    case OpKind::kExp:
      return "Exp";
    case OpKind::kSqrt:
      return "Sqrt";
    case OpKind::kAdd:
      return "Add";
    case OpKind::kSub:
      return "Sub";
    case OpKind::kMul:
      return "Mul";
    case OpKind::kDiv:
      return "Div";
    case OpKind::kMinimum:
      return "Minimum";
    case OpKind::kMaximum:
      return "Maximum";
    case OpKind::kSoftmax:
      return "Softmax";
    default:
      return "";
  }
}

// A NaN that is the only bound bounds nothing, as in PyTorch; one of two makes
// everything NaN.
std::string ClampCall(const ClampAttributes& clamp, const std::string& x) {
  if (clamp.min.has_value() && clamp.max.has_value()) {
    return fmt::format("kiln::Clamp({}, {}, {})", x, FloatLiteral(*clamp.min),
                       FloatLiteral(*clamp.max));
  }
  const float bound = clamp.min.has_value() ? *clamp.min : *clamp.max;
  if (std::isnan(bound)) return x;
  return fmt::format("kiln::{}({}, {})",
                     clamp.min.has_value() ? "Maximum" : "Minimum", x,
                     FloatLiteral(bound));
}

std::string CastCall(DataType type, const std::string& x) {
  if (type == DataType::kF32) return x;
  return fmt::format("kiln::Round<{}>({})", StorageTypeName(type), x);
}

}  // namespace

std::string PointwiseCall(OpKind op, const Attributes& attributes,
                          const std::vector<std::string>& operands) {
  const std::string& x = operands[0];
  if (const auto* leaky = std::get_if<LeakyReluAttributes>(&attributes)) {
    return fmt::format("kiln::LeakyRelu({}, {})", x,
                       FloatLiteral(leaky->negative_slope));
  }
  if (const auto* gelu = std::get_if<GeluAttributes>(&attributes)) {
    const bool is_tanh = gelu->approximate == GeluApproximate::kTanh;
    return fmt::format("kiln::{}({})", is_tanh ? "GeluTanh" : "Gelu", x);
  }
  if (const auto* clamp = std::get_if<ClampAttributes>(&attributes)) {
    return ClampCall(*clamp, x);
  }
  if (const auto* softplus = std::get_if<SoftplusAttributes>(&attributes)) {
    return fmt::format("kiln::Softplus({}, {}, {})", x,
                       FloatLiteral(softplus->beta),
                       FloatLiteral(softplus->threshold));
  }
  if (const auto* elu = std::get_if<EluAttributes>(&attributes)) {
    return fmt::format("kiln::Elu({}, {})", x, FloatLiteral(elu->alpha));
  }
  if (const auto* cast = std::get_if<CastAttributes>(&attributes)) {
    return CastCall(cast->dtype, x);
  }
  return fmt::format("kiln::{}({})", PlainFunction(op),
                     fmt::join(operands, ", "));
}

}  // namespace kiln
