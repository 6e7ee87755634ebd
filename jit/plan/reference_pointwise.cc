#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

#include "jit/plan/reference_convert.h"
#include "jit/plan/reference_ops.h"
#include "jit/plan/validate.h"

namespace kiln {
namespace {

// Elements per range: some 100 us of the slowest functions.
constexpr int64_t kGrain = int64_t{1} << 13;

// result[i] = f(input[i]).
template <typename Function>
bool Map(const ReferenceTensor& input, const ReferenceWorkers& workers,
         ReferenceTensor* result, const Function& f) {
  return workers.Run(input.size(), kGrain, [&](int64_t begin, int64_t end) {
    std::transform(&input.data[begin], input.data.get() + end,
                   &result->data[begin], f);
  });
}

double Relu(double x) { return MaximumOf(0.0, x); }
double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double Silu(double x) { return x / (1.0 + std::exp(-x)); }
double Relu6(double x) { return MinimumOf(MaximumOf(x, 0.0), 6.0); }
double Hardswish(double x) { return x * Relu6(x + 3.0) / 6.0; }
double Hardsigmoid(double x) { return Relu6(x + 3.0) / 6.0; }
double Mish(double x) { return x * std::tanh(std::log1p(std::exp(x))); }

// x times the normal distribution function; erfc keeps the digits that
// 1 + erf(x / sqrt(2)) loses for negative x.
double GeluErf(double x) {
  return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
}

double GeluTanh(double x) {
  const double beta = std::sqrt(2.0 / std::numbers::pi);
  return 0.5 * x * (1.0 + std::tanh(beta * (x + 0.044715 * x * x * x)));
}

// A NaN among two bounds makes everything NaN; a NaN that is the only bound
// bounds nothing. Both are PyTorch's (aten/src/ATen/native/
// TensorCompare.cpp, clamp_out).
bool Bound(const ReferenceTensor& input, std::optional<float> min,
           std::optional<float> max, const ReferenceWorkers& workers,
           ReferenceTensor* result) {
  const bool one = !min.has_value() || !max.has_value();
  if (one && min.has_value() && std::isnan(*min)) min.reset();
  if (one && max.has_value() && std::isnan(*max)) max.reset();
  return Map(input, workers, result, [&](double x) {
    if (min.has_value()) x = MaximumOf(x, *min);
    if (max.has_value()) x = MinimumOf(x, *max);
    return x;
  });
}

// The ops that have attributes.
bool MapWithAttributes(const Op& op, const ReferenceTensor& input,
                       const ReferenceWorkers& workers,
                       ReferenceTensor* result) {
  if (const auto* clamp = std::get_if<ClampAttributes>(&op.attributes)) {
    if (op.kind == OpKind::kClamp) {
      return Bound(input, clamp->min, clamp->max, workers, result);
    }
    return Bound(input, clamp->min.value_or(-1.0f), clamp->max.value_or(1.0f),
                 workers, result);
  }
  if (const auto* gelu = std::get_if<GeluAttributes>(&op.attributes)) {
    const bool is_tanh = gelu->approximate == GeluApproximate::kTanh;
    return Map(input, workers, result, is_tanh ? GeluTanh : GeluErf);
  }
  if (const auto* leaky = std::get_if<LeakyReluAttributes>(&op.attributes)) {
    const double slope = leaky->negative_slope;
    return Map(input, workers, result,
               [slope](double x) { return x > 0.0 ? x : x * slope; });
  }
  if (const auto* elu = std::get_if<EluAttributes>(&op.attributes)) {
    const double alpha = elu->alpha;
    return Map(input, workers, result, [alpha](double x) {
      return x > 0.0 ? x : alpha * std::expm1(x);
    });
  }
  const auto& softplus = std::get<SoftplusAttributes>(op.attributes);
  const double beta = softplus.beta;
  const double threshold = softplus.threshold;
  return Map(input, workers, result, [beta, threshold](double x) {
    return x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta;
  });
}

// Input strides of a result of kMaxRank dimensions: 0 where the operand is
// broadcast.
std::array<int64_t, kMaxRank> BroadcastStrides(const Dims& dims) {
  std::array<int64_t, kMaxRank> strides = {};
  int64_t stride = 1;
  for (size_t i = 1; i <= dims.size(); ++i) {
    const int64_t extent = dims[dims.size() - i];
    if (extent > 1) strides[kMaxRank - i] = stride;
    stride *= extent;
  }
  return strides;
}

// result = f(a, b), broadcast, one row of the last dimension at a time.
template <typename Function>
bool Zip(const ReferenceTensor& a, const ReferenceTensor& b,
         const ReferenceWorkers& workers, ReferenceTensor* result,
         const Function& f) {
  const auto a_strides = BroadcastStrides(a.dims);
  const auto b_strides = BroadcastStrides(b.dims);
  const Dims& dims = result->dims;
  const int64_t width = dims.empty() ? 1 : dims.back();
  const auto row = [&](int64_t index) {
    const double* x = a.data.get();
    const double* y = b.data.get();
    int64_t rest = index;
    for (size_t i = 2; i <= dims.size(); ++i) {
      const int64_t extent = dims[dims.size() - i];
      x += rest % extent * a_strides[kMaxRank - i];
      y += rest % extent * b_strides[kMaxRank - i];
      rest /= extent;
    }
    double* const to = &result->data[index * width];
    for (int64_t i = 0; i < width; ++i) {
      to[i] = f(x[i * a_strides[kMaxRank - 1]], y[i * b_strides[kMaxRank - 1]]);
    }
  };
  const int64_t grain = std::max<int64_t>(1, kGrain / width);
  return workers.Run(result->size() / width, grain,
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i) row(i);
                     });
}

}  // namespace

bool ReferenceUnary(const Op& op, ReferenceOperands operands,
                    const ReferenceWorkers& workers, ReferenceTensor* result) {
  const ReferenceTensor& input = *operands[0];
  const auto map = [&](double (*f)(double)) {
    return Map(input, workers, result, f);
  };
  switch (op.kind) {
    case OpKind::kRelu:
      return map(Relu);
    case OpKind::kTanh:
      return map(std::tanh);
    case OpKind::kSigmoid:
      return map(Sigmoid);
    case OpKind::kSilu:
      return map(Silu);
    case OpKind::kHardswish:
      return map(Hardswish);
    case OpKind::kHardsigmoid:
      return map(Hardsigmoid);
    case OpKind::kMish:
      return map(Mish);
    case OpKind::kAbs:
      return map(std::fabs);
    case OpKind::kNeg:
      return map([](double x) { return -x; });
    case OpKind::kExp:
      return map(std::exp);
    case OpKind::kSqrt:
      return map(std::sqrt);
    default:
      return MapWithAttributes(op, input, workers, result);
  }
}

bool ReferenceBinary(const Op& op, ReferenceOperands operands,
                     const ReferenceWorkers& workers, ReferenceTensor* result) {
  const auto zip = [&](const auto& f) {
    return Zip(*operands[0], *operands[1], workers, result, f);
  };
  switch (op.kind) {
    case OpKind::kAdd:
      return zip([](double a, double b) { return a + b; });
    case OpKind::kSub:
      return zip([](double a, double b) { return a - b; });
    case OpKind::kMul:
      return zip([](double a, double b) { return a * b; });
    case OpKind::kDiv:
      return zip([](double a, double b) { return a / b; });
    case OpKind::kMinimum:
      return zip(MinimumOf);
    default:
      return zip(MaximumOf);
  }
}

bool ReferenceCast(const Op& op, ReferenceOperands operands,
                   const ReferenceWorkers& workers, ReferenceTensor* result) {
  const DataType type = std::get<CastAttributes>(op.attributes).dtype;
  return Map(*operands[0], workers, result,
             [type](double x) { return RoundTo(type, x); });
}

}  // namespace kiln
