#ifndef KILN_JIT_PLAN_COMPOSED_OPS_H_
#define KILN_JIT_PLAN_COMPOSED_OPS_H_

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// What PyTorch has a function for, or people a name, and plans write with
// several ops or with one of another name.
struct ComposedOp {
  std::string_view name;
  std::string_view statements;  // from x to y, separated by "; "
  std::string_view where;       // what they take for granted; may be empty
};

// In the order of docs/ops.md.
const std::vector<ComposedOp>& ComposedOps();

// "; write r = sqrt(x); y = div(1, r)", or nothing.
std::string HowToWrite(std::string_view name);

}  // namespace kiln

#endif  // KILN_JIT_PLAN_COMPOSED_OPS_H_
