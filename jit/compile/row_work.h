#ifndef KILN_JIT_COMPILE_ROW_WORK_H_
#define KILN_JIT_COMPILE_ROW_WORK_H_

#include <vector>

#include "jit/compile/fusion.h"
#include "jit/compile/lowered_plan.h"
#include "jit/compile/row_geometry.h"

namespace kiln {

// The work of a group that keeps rows: its anchor is a statistic over them.
RowWork WorkOfRows(const LoweredPlan& plan, const KernelGroup& group);

// Whether what is behind the statistic needs any element that it is taken of.
bool UsesRows(const LoweredPlan& plan, const KernelGroup& group);

// The work of a chain of reductions (row_chains.h) that joins the groups
// `apart`.
RowWork WorkOfChain(const LoweredPlan& plan, const KernelGroup& joined,
                    const std::vector<KernelGroup>& apart);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_ROW_WORK_H_
