#ifndef KILN_JIT_COMPILE_FOLDED_FACTORS_H_
#define KILN_JIT_COMPILE_FOLDED_FACTORS_H_

#include <map>
#include <set>

#include "jit/compile/schedule.h"

namespace kiln {

// What functions by powers of two multiply their argument by: e^x is 2^(x *
// log2(e)), and tanh takes e^2x.
inline constexpr float kLog2E = 0x1.715476p+0f;
inline constexpr float kTwoLog2E = 0x1.715476p+1f;

// Constant factors of values that code in front of them has for nothing,
// because it multiplies by constants anyway.
struct FoldedFactors {
  // Of values whose local variable holds them times a factor. Those of
  // `without_constant` lack one of their own before that, 1 or 2/3.
  std::map<int, float> factors;
  std::set<int> without_constant;
  // Results of tanh that a hardswish alone reads, which computes both.
  std::set<int> skipped;
  // What the logsumexp lacks, because all it reads does.
  float constant = 0.0f;

  float Of(int value) const;
};

// Whether `kernel` is a convolution whose tail, a logsumexp, reads its operand
// times log2(e), to sum powers of it.
bool FoldsFactors(const LoweredPlan& plan, const Kernel& kernel);

// For such a kernel, and in front of a softmax for what tanh takes; nothing for
// others. The convolution's own result has a
// factor, in the scale of its sums, where all that reads it here can take it
// so. Of other values that several nodes read, or a caller, there is none.
FoldedFactors FoldFactors(const LoweredPlan& plan, const Kernel& kernel);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_FOLDED_FACTORS_H_
