#ifndef KILN_JIT_COMPILE_PART_COLUMNS_H_
#define KILN_JIT_COMPILE_PART_COLUMNS_H_

#include <cstdint>

#include "jit/artifact/target.h"
#include "jit/compile/lowered_plan.h"

namespace kiln {

// Of a filter; with fewer head_conv2d.cu is faster where it can be had.
inline constexpr int64_t kFewestColumnsApart = 5;

// Takes apart the columns of large filters with few results, as those with
// which networks that make images end: each column is a filter of its own, and
// what these make is added up where they lie in the image.
//
//   y = conv2d(x, w)   ->   p = conv2d(x, w as [O K, C, R, 1])
//                           y = sum_columns(p, K)
//
// for w: [O, C, R, K], of which the weights of a column are not side by side
// (Node::columns_apart). Products of tensor cores have at least eight results,
// and read their pixels in the time that 32 take: with K times as many there
// are K times fewer. p goes through memory, in f32. Of warpgroups alone
// (sm_90a); weights that a plan computes stay as they are.
LoweredPlan PartColumns(LoweredPlan plan, Grade grade, const Target& target);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_PART_COLUMNS_H_
