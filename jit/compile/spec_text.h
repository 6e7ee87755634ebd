#ifndef KILN_JIT_COMPILE_SPEC_TEXT_H_
#define KILN_JIT_COMPILE_SPEC_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "jit/compile/lowered_plan.h"

namespace kiln {

// Pieces of `struct Spec` that several kinds of kernel have.

// struct `name` with the four extents of `dims`.
std::vector<std::string> ShapeText(const std::string& name, const Dims& dims);

// "static constexpr Index kStrideH = 1, kStrideW = 1;"
std::string PairText(const std::string& name, const Pair& pair);

// The type of positions in rows of `count` elements together.
std::string_view RowIndexType(int64_t count);

// The state of reducers.cuh that computes a kReduce node.
std::string_view ReducerName(OpKind op);

// The node's results as expressions of a reducer, the variable `state`, that
// has taken `steps` values for each.
std::vector<std::string> ReducerResults(const Node& node, int64_t steps,
                                        const std::string& state = "state");

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_SPEC_TEXT_H_
