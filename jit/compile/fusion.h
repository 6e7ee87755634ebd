#ifndef KILN_JIT_COMPILE_FUSION_H_
#define KILN_JIT_COMPILE_FUSION_H_

#include <set>
#include <vector>

#include "jit/compile/lowered_plan.h"

namespace kiln {

// Nodes that one kernel computes. `anchor` is a node with a template of its
// own, or -1. `prologue` (pointwise) runs on each element that the anchor
// reads of its first operand; `epilogue` (pointwise) on each element of the
// anchor's result, or on its own where there is no anchor. A chain of
// reductions has the later ones in its epilogue, too (row_chains.h).
struct KernelGroup {
  int anchor = -1;
  std::vector<int> prologue;
  std::vector<int> epilogue;
  Dims domain;  // extents of the anchor's result and of the epilogue

  // Of convolutions on tensor cores only: a statistic, reduction or pooling of
  // what the epilogue ends with, and pointwise nodes on its result.
  int tail = -1;
  // Beside a tail that gathers statistics: a pooling (commute_pooling.h) of the
  // same values.
  int early_pooling = -1;
  std::vector<int> tail_epilogue;
  // Behind a tail that gathers what softmax over channels needs: the softmax,
  // and pointwise nodes on its result.
  std::vector<int> shares;
  // Behind a tail that gathers statistics: pointwise nodes that need them, on
  // elements that the kernel has stored (conv_finish.cuh).
  std::vector<int> finish;

  // Every node that the kernel computes, in order.
  std::vector<int> Nodes() const;
  // Whether there are none.
  bool IsEmpty() const { return Nodes().empty(); }
};

// Values that the nodes of a group read and do not make.
std::set<int> ValuesRead(const LoweredPlan& plan, const KernelGroup& group);

// Values that `nodes` make.
std::set<int> ValuesMade(const LoweredPlan& plan,
                         const std::vector<int>& nodes);

// Whether any of `nodes` reads any of `values`.
bool AnyReads(const LoweredPlan& plan, const std::vector<int>& nodes,
              const std::set<int>& values);

// Whether any node that is none of `nodes` reads `value`.
bool IsReadOutside(const LoweredPlan& plan, const std::vector<int>& nodes,
                   int value);

// Of what the nodes of a group read, the values with the extents `dims`.
std::set<int> WholeValuesRead(const LoweredPlan& plan, const KernelGroup& group,
                              const Dims& dims);

// The part of `group` up to its anchor.
KernelGroup UpToAnchor(const KernelGroup& group);

// The values that the anchor's operand is made of, as large as it.
std::set<int> WholeValuesReduced(const LoweredPlan& plan,
                                 const KernelGroup& group);

// Cuts the plan at its barriers. Every node is in exactly one group and groups
// are in launch order. Pointwise nodes join the kernel that makes their last
// operand if the extents agree; what remains before a reduction, or before
// pooling that takes a prologue, joins it if nothing else needs the result.
std::vector<KernelGroup> GroupNodes(const LoweredPlan& plan);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_FUSION_H_
