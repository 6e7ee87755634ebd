#ifndef KILN_JIT_PLAN_NAMED_PRODUCT_H_
#define KILN_JIT_PLAN_NAMED_PRODUCT_H_

#include <functional>
#include <optional>

#include "jit/plan/op.h"

namespace kiln {

// The op of a value; null for inputs.
using OpOfValue = std::function<const Op*(ValueId)>;

// The op that a product written by hand is: x * tanh(softplus(x)) is mish(x),
// x * sigmoid(x) silu(x), x * hardsigmoid(x) hardswish(x). Nothing for others.
std::optional<Op> NamedProduct(const Op& op, const OpOfValue& op_of);

}  // namespace kiln

#endif  // KILN_JIT_PLAN_NAMED_PRODUCT_H_
