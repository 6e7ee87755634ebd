#include "client/cli/verification.h"

#include <algorithm>
#include <cmath>

#include "jit/plan/reference_convert.h"

namespace kiln::cli {
namespace {

constexpr double kF32Roundoff = 0x1p-24;
constexpr double kTf32Roundoff = 0x1p-11;
constexpr double kMagnification = 16;
constexpr double kElementOverNorm = 8;
// What sums in double may differ by; far below any output type's roundoff.
constexpr double kDoubleSlack = 0x1p-40;

double RoundoffOf(DataType type) {
  switch (type) {
    case DataType::kF32:
      return 0x1p-24;
    case DataType::kF16:
      return 0x1p-11;
    case DataType::kBF16:
      return 0x1p-8;
  }
  return 0;
}

// The least number that rounds to infinity: half an ulp above the largest
// finite value.
double OverflowOf(DataType type) {
  switch (type) {
    case DataType::kF32:
      return 0x1.ffffffp127;
    case DataType::kF16:
      return 0x1.ffep15;
    case DataType::kBF16:
      return 0x1.ffp127;
  }
  return 0;
}

// An infinity is what overflowed, by as little as it can have been.
double Finite(DataType type, double value) {
  return std::isinf(value) ? std::copysign(OverflowOf(type), value) : value;
}

bool IsSameSpecial(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : std::isinf(a) && a == b;
}

const TensorDesc* OperandDesc(const Op& op, size_t operand,
                              const std::vector<TensorDesc>& values) {
  if (operand >= op.operands.size()) return nullptr;
  const ValueId* value = std::get_if<ValueId>(&op.operands[operand]);
  return value == nullptr ? nullptr : &values[value->index];
}

bool IsConvolution(const Op& op) {
  return op.kind == OpKind::kConv2d || op.kind == OpKind::kConvTranspose2d;
}

// The most terms that one element of the result sums.
double TermsOf(const Op& op, const TensorDesc& result,
               const std::vector<TensorDesc>& values) {
  if (IsConvolution(op)) {
    const TensorDesc* weight = OperandDesc(op, 1, values);
    if (weight == nullptr) return 1;
    const Dims& dims = weight->dims;
    const int64_t channels = op.kind == OpKind::kConv2d ? dims[1] : dims[0];
    return static_cast<double>(channels * dims[2] * dims[3]);
  }
  const TensorDesc* input = OperandDesc(op, 0, values);
  if (input == nullptr) return 1;
  const double size = static_cast<double>(NumElements(input->dims));
  if (op.kind == OpKind::kSoftmax) return size;
  if (const auto* norm = std::get_if<GroupNormAttributes>(&op.attributes)) {
    return size / static_cast<double>(input->dims[0] * norm->num_groups);
  }
  return std::max(1.0, size / static_cast<double>(NumElements(result.dims)));
}

double RoundingErrors(const Plan& plan, const std::vector<TensorDesc>& values) {
  double sum = 0;
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    const bool tf32 = plan.grade == Grade::kTf32 && IsConvolution(op);
    const double roundoff =
        op.kind == OpKind::kCast
            ? RoundoffOf(std::get<CastAttributes>(op.attributes).dtype)
            : (tf32 ? kTf32Roundoff : kF32Roundoff);
    sum += roundoff *
           std::sqrt(TermsOf(op, values[plan.inputs.size() + i], values));
  }
  return sum;
}

}  // namespace

Deviation Compare(DataType dtype, const std::vector<double>& got,
                  const std::vector<double>& wanted) {
  Deviation result;
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (IsSameSpecial(got[i], RoundTo(dtype, wanted[i]))) continue;
    const double computed = Finite(dtype, got[i]);
    if (!std::isfinite(wanted[i]) || !std::isfinite(computed)) {
      ++result.unequal_special;
      continue;
    }
    const double difference = std::abs(computed - wanted[i]);
    error += difference * difference;
    norm += wanted[i] * wanted[i];
    result.max_wanted = std::max(result.max_wanted, std::abs(wanted[i]));
    if (i != 0 && difference <= result.max_abs) continue;
    result.max_abs = difference;
    result.max_at = static_cast<int64_t>(i);
    result.got = got[i];
    result.wanted = wanted[i];
  }
  if (error > 0) result.relative_norm = std::sqrt(error / norm);
  return result;
}

bool Bound::Holds(const Deviation& deviation) const {
  return deviation.unequal_special == 0 &&
         deviation.relative_norm <= relative_norm &&
         deviation.max_abs <= max_abs_over_max * deviation.max_wanted;
}

Bound BoundOf(const Plan& plan, const std::vector<TensorDesc>& values,
              DataType dtype, bool on_cpu) {
  const double output = RoundoffOf(dtype);
  if (on_cpu) return {output + kDoubleSlack, output + kDoubleSlack};
  const double computed = kMagnification * RoundingErrors(plan, values);
  return {output + computed, output + kElementOverNorm * computed};
}

}  // namespace kiln::cli
