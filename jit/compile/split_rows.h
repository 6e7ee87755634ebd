#ifndef KILN_JIT_COMPILE_SPLIT_ROWS_H_
#define KILN_JIT_COMPILE_SPLIT_ROWS_H_

#include <cstdint>
#include <optional>

#include "jit/compile/kernel_spec.h"
#include "jit/compile/schedule.h"

namespace kiln {

// Results of a thread that leaves them split.
inline constexpr int kSplitVector = 8;

// What split_rows.cu leaves of a matrix: parts of its numbers, and a factor for
// each row behind them.
struct SplitRows {
  int64_t rows = 0;
  int64_t numbers = 0;  // of a row
  int halves = 1;       // parts of a number
  bool has_one_sign = false;

  int64_t bytes_of_parts() const;
  int64_t bytes() const;
  friend bool operator==(const SplitRows&, const SplitRows&) = default;
};

// What a linear layer reads instead of an operand (0: input, 1: weights), or a
// kernel leaves that splits that operand; null where the layer reads rows as
// they lie, and for other kernels.
std::optional<SplitRows> SplitRowsOf(const Schedule& schedule,
                                     const Kernel& kernel, int operand);

// The same of what it leaves for others (Kernel::split_result).
std::optional<SplitRows> SplitResultOf(const Schedule& schedule,
                                       const Kernel& kernel);

// Whether `kernel`, a linear layer that makes `value`, can leave it so: all
// that read it behind are layers that want it so, and its blocks have all
// channels of an image.
bool MaySplitResult(const Schedule& schedule, const Kernel& kernel, int value);

// The constants of the kernel that does it: split_rows.cu. Kernel::splits().
KernelSpec MakeSplitSpec(const Schedule& schedule, const Kernel& kernel);

// The fields for both operands of a linear layer that reads parts.
void AddSplitOperands(const Schedule& schedule, const Kernel& kernel,
                      KernelTensors* tensors);
// And for the parts that it leaves (Kernel::split_result).
void AddSplitResult(const Schedule& schedule, const Kernel& kernel,
                    KernelTensors* tensors);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_SPLIT_ROWS_H_
