#ifndef KILN_JIT_COMPILE_RANGE_REWRITES_H_
#define KILN_JIT_COMPILE_RANGE_REWRITES_H_

#include <optional>
#include <string>
#include <vector>

#include "jit/compile/lowered_plan.h"

namespace kiln {

// A pointwise call without the work that the ranges of its operands make dead.
// The same results to the bit, NaN for NaN included, but where `change` names
// another formula: then within the errors that math.cuh states.
struct RangeRewrite {
  std::string expression;  // that takes the call's place
  std::string change;      // "only max can bind"; for people
};

// How the ranges (value_ranges.h) of a pointwise node's operands, which stand
// in `operands` as text, change its call; nothing if they do not.
std::optional<RangeRewrite> RewriteByRanges(
    const LoweredPlan& plan, const Node& node,
    const std::vector<std::string>& operands);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_RANGE_REWRITES_H_
