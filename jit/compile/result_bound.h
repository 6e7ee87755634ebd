#ifndef KILN_JIT_COMPILE_RESULT_BOUND_H_
#define KILN_JIT_COMPILE_RESULT_BOUND_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "jit/compile/lowered_plan.h"

namespace kiln {

// What an op makes of the largest finite magnitude that its operand can have.
enum class BoundKind : uint8_t {
  kTimes,      // times that of a number
  kPlus,       // more by that
  kAtMost,     // no more than that, whatever the operand
  kBatchNorm,  // as running statistics, weight and bias have it
};

struct BoundStep {
  BoundKind kind = BoundKind::kTimes;
  Operand number;  // a constant, or an input with one for each channel
  int node = -1;   // of a kBatchNorm
};

// How large results of `conv` and, behind it, of `ops` can be, channel by
// channel, if its sums of products have a bound: step upon step, the bias
// first. Steps that leave a bound as it is are left out. Null where an op has
// no such step: what it makes can be arbitrarily large, or is made of other
// tensors than constants and channels' numbers that are inputs.
std::optional<std::vector<BoundStep>> BoundSteps(const LoweredPlan& plan,
                                                 const Node& conv,
                                                 const std::vector<int>& ops);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_RESULT_BOUND_H_
