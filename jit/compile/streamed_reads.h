#ifndef KILN_JIT_COMPILE_STREAMED_READS_H_
#define KILN_JIT_COMPILE_STREAMED_READS_H_

#include "jit/compile/schedule.h"

namespace kiln {

// Lets reductions, and rows of which nothing is left but a reduction, load
// their tensors so that caches give them up first, where these are large and no
// other kernel reads them: to keep them would cost what caches hold for others.
// Of several tensors that are very large, or where results as large are
// written, that does not pay (docs/kernel-notes, "What a reduction waits for").
void StreamReads(Schedule* schedule);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_STREAMED_READS_H_
