#ifndef KILN_JIT_COMPILE_CONV_STATES_H_
#define KILN_JIT_COMPILE_CONV_STATES_H_

#include <cstdint>
#include <optional>

#include "jit/compile/schedule.h"

namespace kiln {

// Whether the statistics that `kernel` of `schedule` gathers beside a
// convolution, states of its blocks, are merged by every block that needs them,
// instead of once by a kernel of its own: where only convolutions of
// warpgroups need them, for what channels have in common (conv_channels.cuh),
// and merging takes them less time than that kernel. All kernels must be there.
bool MergesWhereUsed(const Schedule& schedule, const Kernel& kernel,
                     const Target& target);

// The correlation that those statistics can come from: one that leaves states
// which are merged in that way. Null if there is none. All kernels must be
// there.
std::optional<Correlation> CorrelationFor(const Schedule& schedule,
                                          const Kernel& kernel, Grade grade,
                                          const Target& target);

// The kernel that leaves states instead of `value`, one of its statistics;
// null if none does.
const Kernel* KernelThatLeaves(const Schedule& schedule, int value);

// States of each group that `kernel`, as below, leaves to be merged.
int64_t SplitsOf(const Schedule& schedule, const Kernel& kernel);

// Bytes of the states that blocks of `kernel`, a convolution whose tail gathers
// statistics and that holds no images, leave in memory.
int64_t BytesOfStates(const Schedule& schedule, const Kernel& kernel);

// The same, and of what is left for its own second kernel.
int64_t BytesOfPartials(const Schedule& schedule, const Kernel& kernel);

// Where a kernel with a correlation leaves what it sums: behind the states.
Place PlaceOfCorrelations(const Schedule& schedule, const Kernel& kernel);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_STATES_H_
