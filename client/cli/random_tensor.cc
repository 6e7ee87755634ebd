#include "client/cli/random_tensor.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "jit/plan/reference_convert.h"

namespace kiln::cli {
namespace {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
// generators, OOPSLA 2014).
class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed) {}

  // Uniform in (0, 1].
  double Uniform() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return static_cast<double>((z >> 11) + 1) * 0x1p-53;
  }

  // Box-Muller.
  double Normal() {
    const double radius = std::sqrt(-2.0 * std::log(Uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * Uniform());
  }

 private:
  uint64_t state_;
};

bool Takes(const Op& op, size_t operand, int input) {
  if (operand >= op.operands.size()) return false;
  const ValueId* value = std::get_if<ValueId>(&op.operands[operand]);
  return value != nullptr && value->index == input;
}

bool IsVariance(const Plan& plan, int input) {
  for (const Op& op : plan.ops) {
    if (op.kind == OpKind::kBatchNorm && Takes(op, 2, input)) return true;
  }
  return false;
}

double ScaleOf(const Plan& plan, int input) {
  const Dims& dims = plan.inputs[input].desc.dims;
  if (dims.size() != 4) return 1.0;
  for (const Op& op : plan.ops) {
    if (!Takes(op, 1, input)) continue;
    const double window = static_cast<double>(dims[2] * dims[3]);
    if (op.kind == OpKind::kConv2d) return 1.0 / std::sqrt(dims[1] * window);
    if (op.kind == OpKind::kConvTranspose2d) {
      return 1.0 / std::sqrt(dims[0] * window);
    }
  }
  return 1.0;
}

}  // namespace

void FillRandom(const Plan& plan, int input, uint64_t seed, void* elements) {
  const TensorDesc& desc = plan.inputs[input].desc;
  Generator generator(seed * 0x2545f4914f6cdd1du + input);
  const bool positive = IsVariance(plan, input);
  const double scale = ScaleOf(plan, input);
  std::vector<double> values(NumElements(desc.dims));
  for (double& value : values) {
    value = scale * generator.Normal();
    if (positive) value = std::abs(value) + 0.5;
  }
  ElementsFromDouble(desc.dtype, values.data(),
                     static_cast<int64_t>(values.size()), elements);
}

}  // namespace kiln::cli
