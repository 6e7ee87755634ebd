#ifndef KILN_JIT_COMPILE_STREAMED_READS_H_
#define KILN_JIT_COMPILE_STREAMED_READS_H_

#include "jit/compile/schedule.h"

namespace kiln {

// Lets reductions, and rows of which nothing is left but a reduction, load
// their one tensor so that caches give it up first, where it is large and no
// other kernel reads it: to keep it would cost what caches hold for others. Of
// two tensors at once, or where results as large are written, that does not pay
// (docs/kernel-notes, "What a reduction waits for").
void StreamReads(Schedule* schedule);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_STREAMED_READS_H_
