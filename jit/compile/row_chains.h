#ifndef KILN_JIT_COMPILE_ROW_CHAINS_H_
#define KILN_JIT_COMPILE_ROW_CHAINS_H_

#include <set>
#include <vector>

#include "jit/compile/fusion.h"
#include "jit/compile/lowered_plan.h"

namespace kiln {

// Whether kernels keep the rows of which `node`, of extents `input`, is taken:
// they are neighbours in memory or lie side by side, and of reductions that the
// plan has, results have an extent of 1 in the place of each row.
bool TakesRows(const LoweredPlan& plan, const Node& node, const Dims& input);

// Whether `reduce` is not a reduction of the plan, but what lowering makes of a
// norm or a softmax.
bool IsOfNorm(const Node& reduce);

// Whether a norm among `nodes` reads one of `values` by its channel, where
// numbers of rows are found by their place.
bool ReadsByChannel(const LoweredPlan& plan, const std::vector<int>& nodes,
                    const std::set<int>& values);

// The groups that one kernel can compute together with the reduction of group
// `index`: other reductions over the same rows, of the same elements or of what
// is computed of these and of each other's results, and the pointwise groups
// between and behind them. In order, so that the kernel can be launched in the
// place of the last; empty if there is no other reduction. `taken`: groups that
// cannot join.
std::vector<int> ChainOf(const LoweredPlan& plan,
                         const std::vector<KernelGroup>& groups,
                         const std::set<int>& taken, int index);

// These groups as one. Its anchor is the first reduction; the others are among
// the nodes of its epilogue.
KernelGroup JoinedChain(const LoweredPlan& plan,
                        const std::vector<KernelGroup>& groups,
                        const std::vector<int>& chain);

// Whether the values of a group that keeps rows are numbers of a row: results
// of its reductions, and what is computed of nothing else.
class RowValues {
 public:
  RowValues(const LoweredPlan& plan, const KernelGroup& group);

  // Of the reductions that `value` is made of, the number of the last, counted
  // from 0; -1 if it is an element, or not made by the group.
  int LinkOf(int value) const;
  // The same of what `node` makes.
  bool IsOfRow(const Node& node) const;
  // The reductions, in order.
  const std::vector<int>& links() const { return links_; }
  int count() const { return static_cast<int>(links_.size()); }

 private:
  std::vector<int> link_of_value_;
  std::vector<int> links_;
};

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_ROW_CHAINS_H_
