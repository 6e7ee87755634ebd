#ifndef KILN_JIT_COMPILE_LENT_OUTPUT_H_
#define KILN_JIT_COMPILE_LENT_OUTPUT_H_

#include <optional>

#include "jit/compile/schedule.h"

namespace kiln {

// An output in which `value` may lie until kernel `reader`, the last
// that reads it, replaces it element by element: of the same extents and type,
// and written by no other kernel. Saves the memory of a buffer; and what is
// written twice while it is in the L2 goes to memory once. Of several outputs
// the first; none: nullopt.
std::optional<Place> OutputLentTo(const Schedule& schedule, int value,
                                  int reader);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_LENT_OUTPUT_H_
