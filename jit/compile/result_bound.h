#ifndef KILN_JIT_COMPILE_RESULT_BOUND_H_
#define KILN_JIT_COMPILE_RESULT_BOUND_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "jit/compile/lowered_plan.h"

namespace kiln {

// What an op makes of a bound: the members of ResultBound (result_bounds.cuh).
enum class BoundKind : uint8_t {
  kMultiply,
  kAdd,
  kAtMost,
  kAtLeast,
  kGate,
  kLeak,
  kFold,
  kWithin,     // the range of a node's results, whatever was in front of it
  kBatchNorm,  // as a node's running statistics, weight and bias have it
};

struct BoundStep {
  BoundKind kind = BoundKind::kMultiply;
  Operand number;  // a constant, or an input with one for each channel
  int node = -1;
};

// How large results of `conv` and, behind it, of `ops` can be, channel by
// channel, if its sums of products have a bound: step upon step, the bias
// first. Null where what an op makes can be arbitrarily large, or is made of
// other tensors than constants and channels' numbers that are inputs, unless a
// range follows.
std::optional<std::vector<BoundStep>> BoundSteps(const LoweredPlan& plan,
                                                 const Node& conv,
                                                 const std::vector<int>& ops);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_RESULT_BOUND_H_
