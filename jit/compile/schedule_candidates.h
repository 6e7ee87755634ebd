#ifndef KILN_JIT_COMPILE_SCHEDULE_CANDIDATES_H_
#define KILN_JIT_COMPILE_SCHEDULE_CANDIDATES_H_

#include <optional>
#include <vector>

#include "jit/compile/conv_choice.h"
#include "jit/compile/schedule.h"
#include "jit/compile/schedule_report.h"

namespace kiln {

// The layouts that were tried for the tiles of `kernel`, a convolution of
// `schedule` on tensor cores: the best tile of each, fastest first, then those
// of which no tile fits. Searches again, with the `options` of the schedule.
std::vector<ScheduleCandidate> ConvCandidates(const Schedule& schedule,
                                              const Kernel& kernel,
                                              ConvOptions options);

// Where the statistics of `kernel` could come from correlations: what that
// would be like.
std::optional<ScheduleCandidate> CorrelationCandidate(
    const Schedule& schedule, const Kernel& kernel, const ConvOptions& options);

int CountFitting(const std::vector<ScheduleCandidate>& candidates);

// The ways to do `kernel`, a direct convolution of `schedule`, if it is a
// linear layer; else none.
std::vector<ScheduleCandidate> LinearCandidates(const Schedule& schedule,
                                                const Kernel& kernel,
                                                Grade grade,
                                                const Target& target);

// What was weighed for `kernel`, a statistic over rows. Times are those of
// the row model: of any device as of an H100 with as many multiprocessors.
std::vector<ScheduleCandidate> RowCandidates(const Kernel& kernel,
                                             const Target& target);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_SCHEDULE_CANDIDATES_H_
