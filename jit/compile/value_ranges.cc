#include "jit/compile/value_ranges.h"

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include "jit/plan/reference_convert.h"

namespace kiln {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

ValueRange Only(float x) {
  return std::isnan(x) ? ValueRange{} : ValueRange{x, x};
}

// Of a function that rises throughout.
template <typename Function>
ValueRange RisingOf(const ValueRange& x, Function function) {
  return Around(function(double{x.low}), function(double{x.high}));
}

// x * g(x) with g in [0, 1], which falls no lower than `floor`.
ValueRange GatedOf(const ValueRange& x, float floor) {
  const float low = IsNonNegative(x) ? 0.0f : std::max(x.low, floor);
  return {low, IsNonPositive(x) ? -0.0f : x.high};
}

ValueRange LeakyReluOf(const ValueRange& x, float negative_slope) {
  const ValueRange falling =
      ProductOf({x.low, std::min(x.high, 0.0f)}, Only(negative_slope));
  if (x.high <= 0) return falling;
  const ValueRange rising = {IsNonNegative(x) ? x.low : 0.0f, x.high};
  return x.low > 0 ? rising : Hull(falling, rising);
}

ValueRange EluOf(const ValueRange& x, float alpha) {
  const ValueRange rising = {IsNonNegative(x) ? x.low : 0.0f, x.high};
  if (x.low > 0) return rising;
  const double low = std::expm1(double{x.low});
  const ValueRange share = {std::max(Around(low, low).low, -1.0f), 0.0f};
  const ValueRange falling = ProductOf(share, Only(alpha));
  return x.high <= 0 ? falling : Hull(falling, rising);
}

ValueRange TanhOf(const ValueRange& x) {
  const auto tanh = [](double x) { return std::tanh(x); };
  return Clipped(RisingOf(x, tanh), -1.0f, 1.0f);
}

ValueRange SigmoidOf(const ValueRange& x) {
  const auto sigmoid = [](double x) { return 1.0 / (1.0 + std::exp(-x)); };
  return Clipped(RisingOf(x, sigmoid), 0.0f, 1.0f);
}

// min(max(x + 3, 0), 6)
ValueRange HardShareOf(const ValueRange& x) {
  return SmallerOf(LargerOf(SumOf(x, Only(3.0f)), Only(0.0f)), Only(6.0f));
}

ValueRange HardsigmoidOf(const ValueRange& x) {
  const ValueRange result = ProductOf(HardShareOf(x), Only(1.0f / 6.0f));
  return Around(result.low, result.high);
}

ValueRange HardswishOf(const ValueRange& x) {
  ValueRange result =
      ProductOf(ProductOf(x, HardShareOf(x)), Only(1.0f / 6.0f));
  result.low = std::max(result.low, -0.375f);
  return Around(result.low, result.high);
}

ValueRange SoftplusOf(const ValueRange& x, const SoftplusAttributes& softplus) {
  constexpr double kLog2 = 0.693148;  // rounded up
  const float beta = softplus.beta;
  if (!(beta >= 0x1p-20f && beta <= 0x1p20f && softplus.threshold >= 0)) {
    return {};
  }
  const double positive = std::max(double{x.high}, 0.0);
  return {0.0f, Around(0, positive + kLog2 / beta).high};
}

ValueRange SqrtOf(const ValueRange& x) {
  const double low = x.low > 0 ? std::sqrt(double{x.low}) : x.low;
  return Around(x.low < 0 ? -0.0 : low, std::sqrt(std::max(x.high, 0.0f)));
}

ValueRange ClampOf(ValueRange x, const ClampAttributes& clamp) {
  if (clamp.min.has_value() && std::isnan(*clamp.min)) return {};
  if (clamp.max.has_value() && std::isnan(*clamp.max)) return {};
  if (clamp.min.has_value()) x = LargerOf(x, Only(*clamp.min));
  if (clamp.max.has_value()) x = SmallerOf(x, Only(*clamp.max));
  return x;
}

// Rounding is monotone. An f16 beyond the largest finite one is infinite.
ValueRange CastOf(const ValueRange& x, DataType type) {
  return {static_cast<float>(RoundTo(type, x.low)),
          static_cast<float>(RoundTo(type, x.high))};
}

// A sum of any number of values, rounded on the way.
ValueRange TotalOf(const ValueRange& x) {
  if (IsNonNegative(x)) return {0.0f, kInfinity};
  if (x.high <= 0) return {-kInfinity, 0.0f};
  return {};
}

// A mean of up to 2^14 values, or one whose rounding errors are summed beside
// it: wrong by less than 2^-9 of the largest, if the sum is not infinite.
ValueRange MeanOf(const ValueRange& x) {
  const double largest = std::max(-double{x.low}, double{x.high});
  if (largest > 1e20) return TotalOf(x);
  const double error = largest * 0x1p-9;
  const ValueRange mean = Outward(x.low - error, x.high + error);
  const ValueRange sign = TotalOf(x);
  return Clipped(mean, sign.low, sign.high);
}

class RangeSearch {
 public:
  explicit RangeSearch(LoweredPlan* plan) : plan_(plan) {}

  void Run() && {
    for (const Node& node : plan_->nodes) {
      for (const int result : node.results) {
        plan_->values[result].range = Of(node);
      }
    }
  }

 private:
  ValueRange Operand0(const Node& node) const {
    return RangeOf(*plan_, node.operands[0]);
  }

  ValueRange Of(const Node& node) const {
    switch (node.kind) {
      case NodeKind::kPointwise:
        return OfPointwise(node);
      case NodeKind::kPool2d:
        return OfPool(node);
      case NodeKind::kUnfold:
      case NodeKind::kTurn:
      case NodeKind::kJoin:
      case NodeKind::kMosaic:
      case NodeKind::kCut:
        return Operand0(node);
      case NodeKind::kReduce:
        return OfReduction(node);
      case NodeKind::kConv2d:
      case NodeKind::kConvTranspose2d:
      case NodeKind::kSumColumns:
        return {};
    }
    return {};
  }

  ValueRange OfPointwise(const Node& node) const {
    if (node.op == OpKind::kGroupNorm || node.op == OpKind::kBatchNorm) {
      return {};
    }
    // Of sums in several parts, each with errors of its own.
    if (node.op == OpKind::kSoftmax) return {0.0f, 2.0f};
    if (node.operands.size() == 2) return OfBinary(node);
    if (!std::holds_alternative<std::monostate>(node.attributes)) {
      return OfUnaryWithAttributes(node);
    }
    return OfUnary(node);
  }

  ValueRange OfBinary(const Node& node) const {
    const ValueRange x = Operand0(node);
    const ValueRange y = RangeOf(*plan_, node.operands[1]);
    switch (node.op) {
      case OpKind::kAdd:
        return SumOf(x, y);
      case OpKind::kSub:
        return SumOf(x, NegativeOf(y));
      case OpKind::kMul:
        return ProductOf(x, y);
      case OpKind::kDiv:
        return QuotientOf(x, y);
      case OpKind::kMinimum:
        return SmallerOf(x, y);
      case OpKind::kMaximum:
        return LargerOf(x, y);
      default:
        return {};
    }
  }

  ValueRange OfUnaryWithAttributes(const Node& node) const {
    const ValueRange x = Operand0(node);
    const Attributes& attributes = node.attributes;
    if (const auto* leaky = std::get_if<LeakyReluAttributes>(&attributes)) {
      return LeakyReluOf(x, leaky->negative_slope);
    }
    if (std::holds_alternative<GeluAttributes>(attributes)) {
      const ValueRange gelu = GatedOf(x, -0.1701f);
      return Around(gelu.low, gelu.high);
    }
    if (const auto* clamp = std::get_if<ClampAttributes>(&attributes)) {
      return ClampOf(x, *clamp);
    }
    if (const auto* softplus = std::get_if<SoftplusAttributes>(&attributes)) {
      return SoftplusOf(x, *softplus);
    }
    if (const auto* elu = std::get_if<EluAttributes>(&attributes)) {
      return EluOf(x, elu->alpha);
    }
    if (const auto* cast = std::get_if<CastAttributes>(&attributes)) {
      return CastOf(x, cast->dtype);
    }
    return {};
  }

  ValueRange OfUnary(const Node& node) const {
    const ValueRange x = Operand0(node);
    switch (node.op) {
      case OpKind::kRelu:
        return LargerOf(x, Only(0.0f));
      case OpKind::kTanh:
        return TanhOf(x);
      case OpKind::kSigmoid:
        return SigmoidOf(x);
      case OpKind::kSilu:
        return GatedOf(x, -0.2785f);
      case OpKind::kHardswish:
        return HardswishOf(x);
      case OpKind::kHardsigmoid:
        return HardsigmoidOf(x);
      case OpKind::kMish:
        return GatedOf(x, -0.3089f);
      case OpKind::kAbs:
        return AbsoluteOf(x);
      case OpKind::kNeg:
        return NegativeOf(x);
      case OpKind::kExp:
        return RisingOf(x, [](double x) { return std::exp(x); });
      case OpKind::kSqrt:
        return SqrtOf(x);
      default:
        return {};
    }
  }

  // Windows of max_pool2d that a dilation leaves outside are -infinity.
  ValueRange OfPool(const Node& node) const {
    const auto& pool = std::get<PoolAttributes>(node.attributes);
    const ValueRange x = Operand0(node);
    const bool is_padded = pool.padding != Pair{0, 0};
    if (node.op == OpKind::kMaxPool2d) {
      const bool may_miss = is_padded && pool.dilation != Pair{1, 1};
      return may_miss ? Hull(x, Only(-kInfinity)) : x;
    }
    const ValueRange padded = is_padded ? Hull(x, Only(0.0f)) : x;
    if (pool.divisor_override.has_value()) {
      return *pool.divisor_override > 0 ? TotalOf(padded) : ValueRange{};
    }
    const bool is_small = pool.kernel_size[0] * pool.kernel_size[1] <= 1 << 14;
    return is_small ? MeanOf(padded) : TotalOf(padded);
  }

  ValueRange OfReduction(const Node& node) const {
    const ValueRange x = Operand0(node);
    switch (node.op) {
      case OpKind::kSum:
        return TotalOf(x);
      case OpKind::kMean:
        return MeanOf(x);
      case OpKind::kAmax:
      case OpKind::kAmin:
        return x;
      default:
        return {};
    }
  }

  LoweredPlan* const plan_;
};

}  // namespace

void FindRanges(LoweredPlan* plan) { RangeSearch(plan).Run(); }

ValueRange RangeOf(const LoweredPlan& plan, const Operand& operand) {
  if (const float* constant = std::get_if<float>(&operand)) {
    return Only(*constant);
  }
  const int value = ValueOf(operand);
  return value < 0 ? ValueRange{} : plan.values[value].range;
}

}  // namespace kiln
