#include "jit/plan/rounded_values.h"

#include <variant>

#include "jit/plan/op_table.h"

namespace kiln {
namespace {

bool IsConvolution(const Op& op) {
  const OpClass op_class = FindOp(op.kind)->op_class;
  return op_class == OpClass::kConv || op_class == OpClass::kConvTranspose;
}

}  // namespace

std::vector<bool> RoundedValues(const Plan& plan,
                                const std::vector<TensorDesc>& values) {
  std::vector<bool> rounded(values.size());
  const auto round = [&](int value) {
    const int op = value - static_cast<int>(plan.inputs.size());
    rounded[value] = op >= 0 && plan.ops[op].kind != OpKind::kCast;
  };
  for (const Op& op : plan.ops) {
    if (!IsConvolution(op)) continue;
    const int input = std::get<ValueId>(op.operands[0]).index;
    const int weight = std::get<ValueId>(op.operands[1]).index;
    const DataType type = values[input].dtype;
    if (type == DataType::kF32 || values[weight].dtype != type) continue;
    round(input);
    round(weight);
  }
  return rounded;
}

}  // namespace kiln
