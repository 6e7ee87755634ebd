#include "jit/plan/named_product.h"

namespace kiln {
namespace {

const Op* OpOf(const Operand& operand, const OpOfValue& op_of) {
  const auto* value = std::get_if<ValueId>(&operand);
  return value == nullptr ? nullptr : op_of(*value);
}

// The softplus that PyTorch's mish is made of.
bool IsDefaultSoftplus(const Op& op) {
  const auto* softplus = std::get_if<SoftplusAttributes>(&op.attributes);
  return softplus != nullptr && *softplus == SoftplusAttributes();
}

// The op that x * f(x) is, where `factor` is f(x).
std::optional<OpKind> ProductWith(const Op& factor, const Operand& x,
                                  const OpOfValue& op_of) {
  const Operand& argument = factor.operands[0];
  if (factor.kind == OpKind::kSigmoid && argument == x) return OpKind::kSilu;
  if (factor.kind == OpKind::kHardsigmoid && argument == x) {
    return OpKind::kHardswish;
  }
  if (factor.kind != OpKind::kTanh) return std::nullopt;
  const Op* const inner = OpOf(argument, op_of);
  if (inner == nullptr || !IsDefaultSoftplus(*inner)) return std::nullopt;
  if (inner->operands[0] != x) return std::nullopt;
  return OpKind::kMish;
}

}  // namespace

std::optional<Op> NamedProduct(const Op& op, const OpOfValue& op_of) {
  if (op.kind != OpKind::kMul) return std::nullopt;
  for (const size_t x : {0, 1}) {
    const Op* const factor = OpOf(op.operands[1 - x], op_of);
    if (factor == nullptr) continue;
    const auto kind = ProductWith(*factor, op.operands[x], op_of);
    if (!kind) continue;
    Op named;
    named.kind = *kind;
    named.name = op.name;
    named.operands = {op.operands[x]};
    return named;
  }
  return std::nullopt;
}

}  // namespace kiln
