#ifndef KILN_JIT_COMPILE_REDUCE_GEOMETRY_H_
#define KILN_JIT_COMPILE_REDUCE_GEOMETRY_H_

#include <cstdint>

#include "jit/compile/fusion.h"
#include "jit/compile/lowered_plan.h"

namespace kiln {

// A reduction's input as kept0 x reduced0 x kept1 x reduced1 x kept2: any
// choice among four axes once neighbours of one kind are merged.
struct ReduceView {
  int64_t kept0 = 1;
  int64_t reduced0 = 1;
  int64_t kept1 = 1;
  int64_t reduced1 = 1;
  int64_t kept2 = 1;

  int64_t outputs() const { return kept0 * kept1 * kept2; }
  int64_t steps() const { return reduced0 * reduced1; }
  // Whether neighbouring steps read neighbours in memory, and not neighbouring
  // outputs.
  bool reduces_innermost() const {
    return kept2 == 1 && (reduced1 > 1 || kept1 == 1);
  }
  // Neighbours in memory that are all steps of one output, or all steps of the
  // same number.
  int64_t run() const {
    if (reduces_innermost()) return reduced1 > 1 ? reduced1 : reduced0;
    return kept2 > 1 ? kept2 : kept1;
  }
  friend bool operator==(const ReduceView&, const ReduceView&) = default;
};

// The view that `node`, a kReduce, has of an input with extents `dims`.
ReduceView ViewOf(const Node& node, const Dims& dims);

// How threads share the work; the names are those of reduce.cu.
struct ReduceGeometry {
  ReduceView view;
  int vector = 1;      // neighbours in memory that are one access
  int threads = 256;   // of a block
  int lanes = 1;       // threads of a block that share one output
  int splits = 1;      // blocks that share one output
  int at_once = 1;     // accesses that a thread has in flight
  int min_blocks = 0;  // on a multiprocessor at once; 0: the compiler's choice
  bool streams = false;  // caches give up first what it reads

  bool rows() const { return view.reduces_innermost(); }
  int64_t outputs_per_block() const {
    return int64_t{threads} / lanes * (rows() ? 1 : vector);
  }
  int64_t blocks() const {
    return (view.outputs() + outputs_per_block() - 1) / outputs_per_block();
  }
};

// What a thread does for one element of the input.
struct ReduceWork {
  int operands = 1;         // values that it is made of, as large as it
  bool reads_more = false;  // and others, that are broadcast
  int bytes = 4;            // of an element of the widest of them
  int64_t prologue = 0;     // operations
};

// Of `group`, whose anchor is a kReduce.
ReduceWork ReduceWorkOf(const LoweredPlan& plan, const KernelGroup& group);

// As many lanes, and beyond a block's as many splits, as give each of the
// device's `sm_count` multiprocessors work, but no fewer steps for a thread
// than are worth it.
ReduceGeometry ChooseReduceGeometry(const ReduceView& view,
                                    const ReduceWork& work, int sm_count);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_REDUCE_GEOMETRY_H_
