#ifndef KILN_JIT_COMPILE_CALL_REWRITES_H_
#define KILN_JIT_COMPILE_CALL_REWRITES_H_

#include <optional>
#include <string>
#include <vector>

#include "jit/compile/lowered_plan.h"

namespace kiln {

// A pointwise call that is cheaper for what is known of its operands' ranges
// (value_ranges.h) and of how exact its result has to be (value_demands.h). The
// same results to the bit, NaN for NaN included, but where `change` names
// another formula: then within the errors that math.cuh states, and with the
// infinities that `change` says.
struct CallRewrite {
  std::string expression;  // that takes the call's place
  std::string change;      // "only its upper bound can bind"; for people
};

// How the call of a pointwise node, whose operands stand in `operands` as text,
// becomes cheaper; nothing if it does not.
std::optional<CallRewrite> RewriteCall(
    const LoweredPlan& plan, const Node& node,
    const std::vector<std::string>& operands);

// Whether `node` is a tanh computed by its power alone: kiln::TanhBesideOne.
bool IsTanhByPower(const LoweredPlan& plan, const Node& node);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CALL_REWRITES_H_
