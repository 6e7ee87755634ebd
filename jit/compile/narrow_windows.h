#ifndef KILN_JIT_COMPILE_NARROW_WINDOWS_H_
#define KILN_JIT_COMPILE_NARROW_WINDOWS_H_

#include <optional>

#include "jit/artifact/target.h"
#include "jit/compile/lowered_plan.h"
#include "jit/plan/plan.h"

namespace kiln {

// How narrow_windows.cu divides `conv`, of several taps, a stride of 1 and few
// results, if that is faster than tensor cores, which multiply eight results
// at least. Signals, images of one row, only where no other convolution of the
// plan would gain by fold_signals.h.
std::optional<DirectTile> NarrowWindowTile(const LoweredPlan& plan,
                                           const Node& conv, Grade grade,
                                           const Target& target);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_NARROW_WINDOWS_H_
