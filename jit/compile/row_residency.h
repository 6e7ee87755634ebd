#ifndef KILN_JIT_COMPILE_ROW_RESIDENCY_H_
#define KILN_JIT_COMPILE_ROW_RESIDENCY_H_

#include <optional>
#include <vector>

#include "jit/compile/fusion.h"
#include "jit/compile/lowered_plan.h"
#include "jit/compile/row_geometry.h"

namespace kiln {

// A kernel: plain where `rows` is empty. Otherwise the group's anchor is a
// statistic whose results stay in the kernel, and so does what is computed of
// these alone; the prologue makes what it is taken of, and the epilogue uses
// both. Every other value may be needed elsewhere, but where rows end in a
// reduction (a tail), whose outputs alone are stored. Of a chain
// (row_chains.h) the anchor is the first reduction, and the others are in the
// epilogue.
struct RowGroup {
  KernelGroup group;
  std::optional<RowGeometry> rows;
  // Of a statistic over rows: what was weighed, whether or not they are kept.
  std::optional<RowWork> work = std::nullopt;
};

struct RowOptions {
  // Of the candidate that each statistic gets (RankRowGeometries): 0 is the
  // fastest, and beyond the last means the last.
  int rank = 0;
  // Nothing is asked of the device; teams work in turns.
  bool freely = false;
  // Registers did not suffice: through several reductions, and where they lie
  // side by side, rows are kept in shared memory.
  bool spares_registers = false;
};

// Joins reductions over the same rows where that saves a kernel and bytes.
// Merges each other statistic over rows with the pointwise group that uses it,
// and with the pointwise group that makes its input, where the rows fit on the
// chip of `target` and two touches of memory cost less than three. Whatever
// does not is left as it is.
std::vector<RowGroup> KeepRowsOnChip(const LoweredPlan& plan,
                                     const Target& target,
                                     std::vector<KernelGroup> groups,
                                     const RowOptions& options);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_ROW_RESIDENCY_H_
