#include "jit/compile/call_rewrites.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "fmt/format.h"
#include "jit/compile/element_code.h"
#include "jit/compile/value_ranges.h"

namespace kiln {
namespace {

using Rewrite = std::optional<CallRewrite>;

constexpr char kDropped[] = "dropped";

template <typename... Args>
std::string Call(std::string_view function, const Args&... args) {
  const std::vector<std::string> all = {args...};
  return fmt::format("kiln::{}({})", function, fmt::join(all, ", "));
}

// The bounds of a clamp that can bind.
struct Binding {
  bool min = false;
  bool max = false;
  bool all() const { return min && max; }
  bool any() const { return min || max; }
};

Binding FindBinding(const ValueRange& x, float min, float max) {
  return {!IsNeverBelow(x, min), !IsNeverAbove(LargerOf(x, {min, min}), max)};
}

// Of clamps that are not dropped as a whole.
const char* ChangeOf(const Binding& binding) {
  if (!binding.any()) return "without clamps";
  return binding.min ? "only its lower bound can bind"
                     : "only its upper bound can bind";
}

// As kiln::Bounds has it.
const char* BoundsName(const Binding& binding) {
  if (binding.all()) return "kBoth";
  if (!binding.any()) return "kNone";
  return binding.min ? "kLower" : "kUpper";
}

Rewrite RewriteMaximum(const ValueRange& x, float bound,
                       const std::string& text) {
  if (std::isnan(bound) || !IsNeverBelow(x, bound)) return {};
  return CallRewrite{text, kDropped};
}

Rewrite RewriteMinimum(const ValueRange& x, float bound,
                       const std::string& text) {
  if (std::isnan(bound) || !IsNeverAbove(x, bound)) return {};
  return CallRewrite{text, kDropped};
}

Rewrite RewriteClamp(const ValueRange& x, const ClampAttributes& clamp,
                     const std::string& text) {
  if (!clamp.max.has_value()) return RewriteMaximum(x, *clamp.min, text);
  if (!clamp.min.has_value()) return RewriteMinimum(x, *clamp.max, text);
  if (std::isnan(*clamp.min) || std::isnan(*clamp.max)) return {};
  const Binding binding = FindBinding(x, *clamp.min, *clamp.max);
  if (binding.all()) return {};
  if (!binding.any()) return CallRewrite{text, kDropped};
  return CallRewrite{binding.min
                         ? Call("Maximum", text, FloatLiteral(*clamp.min))
                         : Call("Minimum", text, FloatLiteral(*clamp.max)),
                     ChangeOf(binding)};
}

Rewrite RewriteLeakyRelu(const ValueRange& x, float negative_slope,
                         const std::string& text) {
  const bool keeps_zero =
      std::isfinite(negative_slope) && !std::signbit(negative_slope);
  if (x.low > 0 || (IsNonNegative(x) && keeps_zero)) {
    return CallRewrite{text, kDropped};
  }
  if (x.high > 0) return {};
  return CallRewrite{Call("Mul", FloatLiteral(negative_slope), text),
                     "a multiplication"};
}

Rewrite RewriteElu(const ValueRange& x, float alpha, const std::string& text) {
  const bool keeps_zero = std::isfinite(alpha) && !std::signbit(alpha);
  if (x.low > 0 || (IsNonNegative(x) && keeps_zero)) {
    return CallRewrite{text, kDropped};
  }
  if (x.high > 0) return {};
  return CallRewrite{
      Call("Mul", FloatLiteral(alpha), Call("Expm1OfNegative", text)),
      "without a choice"};
}

Rewrite RewriteSoftplus(const ValueRange& x, const SoftplusAttributes& softplus,
                        const std::string& text) {
  const float beta = softplus.beta;
  // Of an infinity a beta of 0 makes a NaN, which no range knows of.
  if (!std::isfinite(beta) || beta == 0.0f) return {};
  if (std::isnan(softplus.threshold)) return {};
  const ValueRange s = ProductOf(x, {beta, beta});
  if (s.low > softplus.threshold) return CallRewrite{text, kDropped};
  if (!(s.high <= softplus.threshold)) return {};
  return CallRewrite{Call("SoftplusBelow", text, FloatLiteral(beta)),
                     "without its threshold"};
}

// hardsigmoid and hardswish: clamps of x + 3. From -2 to 3, where it does not
// cancel, (x + 3) / 6 is one instruction.
Rewrite RewriteHard(const std::string& function, const ValueRange& x,
                    const std::string& text) {
  if (IsWithin(x, -2.0f, 3.0f)) {
    return CallRewrite{Call(function + "Inside", text),
                       "without clamps, by one multiply-add for (x + 3) / 6"};
  }
  const Binding binding = FindBinding(SumOf(x, {3.0f, 3.0f}), 0.0f, 6.0f);
  if (binding.all()) return {};
  return CallRewrite{
      Call(fmt::format("{}<kiln::Bounds::{}>", function, BoundsName(binding)),
           text),
      ChangeOf(binding)};
}

// Functions that take a power of e: names of kiln::Reach.
Rewrite RewritePower(const std::string& function, const ValueRange& x,
                     const std::string& text) {
  const bool is_small = IsWithin(x, -1.0f, 1.0f);
  const bool is_bounded = function == "Exp" && IsWithin(x, -80.0f, 80.0f);
  if (!is_small && !is_bounded) return {};
  return CallRewrite{Call(fmt::format("{}<kiln::Reach::{}>", function,
                                      is_small ? "kSmall" : "kBounded"),
                          text),
                     "without guards against overflow"};
}

constexpr const char* kAsExactAsHalf =
    "as exact as 16 bits show, to which it is rounded";

bool IsSmallForTanh(const ValueRange& x) {
  return x.low > -0.6f && x.high < 0.6f;
}

Rewrite RewriteTanh(const ValueRange& x, Exactness exactness,
                    const std::string& text) {
  if (exactness == Exactness::kTf32) {
    return CallRewrite{Call("ApproximateTanh", text),
                       "in one instruction, right to 11 bits"};
  }
  if (IsSmallForTanh(x)) {
    return CallRewrite{Call("TanhOfSmall", text), "by its polynomial alone"};
  }
  if (exactness == Exactness::kHalf) {
    return CallRewrite{Call("TanhForHalf", text), kAsExactAsHalf};
  }
  if (exactness != Exactness::kBesideOne) return {};
  return CallRewrite{Call("TanhBesideOne", text),
                     "by its power alone, for only errors beside 1 count"};
}

// Whether a value goes into norms by its own mean and deviation and nowhere
// else. There an infinity makes NaN of all, as a NaN does.
bool IsOnlyNormalized(const LoweredPlan& plan, int value) {
  const auto normalizes = [value](const Node& node) {
    return node.op == OpKind::kGroupNorm && ValueOf(node.operands[0]) == value;
  };
  return !plan.AnyIsOutput({value}) &&
         std::all_of(plan.nodes.begin(), plan.nodes.end(),
                     [&](const Node& node) {
                       return !node.Reads(value) || normalizes(node);
                     });
}

Rewrite RewriteGelu(const LoweredPlan& plan, const Node& node,
                    const std::string& text) {
  const auto& attributes = std::get<GeluAttributes>(node.attributes);
  if (attributes.approximate != GeluApproximate::kNone) return {};
  const int value = node.results[0];
  const Exactness exactness = plan.values[value].exactness;
  std::string change;
  if (exactness == Exactness::kHalf) {
    change = kAsExactAsHalf;
  } else if (exactness == Exactness::kSmooth) {
    change = "right to 15 bits, of which fewer show";
  }
  std::string function = change.empty() ? "Gelu" : "GeluForHalf";
  if (IsOnlyNormalized(plan, value)) {
    function += "<kiln::OfInfinity::kNaN>";
    change += change.empty() ? "" : ", ";
    change += "by one multiply-add, infinities as NaN, as a norm makes them";
  }
  if (change.empty()) return {};
  return CallRewrite{Call(function, text), change};
}

// The function that is enough for what is rounded to 16 bits.
const char* FunctionForHalf(OpKind op) {
  switch (op) {
    case OpKind::kExp:
      return "ExpForHalf";
    case OpKind::kSigmoid:
      return "SigmoidForHalf";
    case OpKind::kSilu:
      return "SiluForHalf";
    case OpKind::kMish:
      return "MishForHalf";
    default:
      return nullptr;
  }
}

Rewrite RewriteUnary(OpKind op, const ValueRange& x, Exactness exactness,
                     const std::string& text) {
  const char* const for_half = FunctionForHalf(op);
  if (exactness == Exactness::kHalf && for_half != nullptr) {
    return CallRewrite{Call(for_half, text), kAsExactAsHalf};
  }
  switch (op) {
    case OpKind::kRelu:
      return RewriteMaximum(x, 0.0f, text);
    case OpKind::kAbs:
      if (!IsNonNegative(x)) return {};
      return CallRewrite{text, kDropped};
    case OpKind::kHardswish:
      return RewriteHard("Hardswish", x, text);
    case OpKind::kHardsigmoid:
      return RewriteHard("Hardsigmoid", x, text);
    case OpKind::kExp:
      return RewritePower("Exp", x, text);
    case OpKind::kSigmoid:
      return RewritePower("Sigmoid", x, text);
    case OpKind::kSilu:
      return RewritePower("Silu", x, text);
    case OpKind::kMish:
      return RewritePower("Mish", x, text);
    default:
      return {};
  }
}

// Of a minimum or maximum with a constant in either place.
Rewrite RewriteBinary(const LoweredPlan& plan, const Node& node,
                      const std::vector<std::string>& operands) {
  const auto rewrite =
      node.op == OpKind::kMaximum ? RewriteMaximum : RewriteMinimum;
  for (const size_t i : {0, 1}) {
    const float* const bound = std::get_if<float>(&node.operands[1 - i]);
    if (bound == nullptr) continue;
    return rewrite(RangeOf(plan, node.operands[i]), *bound, operands[i]);
  }
  return {};
}

}  // namespace

std::optional<CallRewrite> RewriteCall(
    const LoweredPlan& plan, const Node& node,
    const std::vector<std::string>& operands) {
  if (node.kind != NodeKind::kPointwise) return {};
  if (node.op == OpKind::kMaximum || node.op == OpKind::kMinimum) {
    return RewriteBinary(plan, node, operands);
  }
  if (node.operands.size() != 1) return {};
  const ValueRange x = RangeOf(plan, node.operands[0]);
  const std::string& text = operands[0];
  const Attributes& attributes = node.attributes;
  if (const auto* clamp = std::get_if<ClampAttributes>(&attributes)) {
    return RewriteClamp(x, *clamp, text);
  }
  if (const auto* leaky = std::get_if<LeakyReluAttributes>(&attributes)) {
    return RewriteLeakyRelu(x, leaky->negative_slope, text);
  }
  if (const auto* elu = std::get_if<EluAttributes>(&attributes)) {
    return RewriteElu(x, elu->alpha, text);
  }
  if (const auto* softplus = std::get_if<SoftplusAttributes>(&attributes)) {
    return RewriteSoftplus(x, *softplus, text);
  }
  if (std::holds_alternative<GeluAttributes>(attributes)) {
    return RewriteGelu(plan, node, text);
  }
  const Exactness exactness = plan.values[node.results[0]].exactness;
  if (node.op == OpKind::kTanh) return RewriteTanh(x, exactness, text);
  return RewriteUnary(node.op, x, exactness, text);
}

bool IsTanhByPower(const LoweredPlan& plan, const Node& node) {
  return node.op == OpKind::kTanh &&
         plan.values[node.results[0]].exactness == Exactness::kBesideOne &&
         !IsSmallForTanh(RangeOf(plan, node.operands[0]));
}

}  // namespace kiln
