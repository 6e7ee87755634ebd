#ifndef KILN_JIT_COMPILE_CORRELATION_H_
#define KILN_JIT_COMPILE_CORRELATION_H_

#include <cstdint>
#include <optional>

#include "jit/artifact/target.h"
#include "jit/compile/conv_geometry.h"

namespace kiln {

// How blocks share the correlations of a convolution's input, from which
// correlate.cu has the statistics of group_norm of its results; names are those
// of that file.
struct Correlation {
  // Of an image's rows, a strip for each block: 1 to as many as all rows of the
  // filter reach, none of them empty.
  int64_t strips = 1;
  int64_t column_blocks = 1;  // of an image's columns: one for every 128
  double cycles = 0.0;        // predicted, as for tiles; more than 0
  friend bool operator==(const Correlation&, const Correlation&) = default;
};

// Whether the template takes `problem`: it needs tensor cores of sm_90a, f32,
// at most eight channels in and at most three taps each way, and as many
// rounding errors as the grade tf32 allows, since what it sums is larger than
// what comes out by the square of how much larger the terms of a result are
// than the result.
bool CanCorrelate(const ConvProblem& problem, Grade grade,
                  const Target& target);

// The fastest for the statistics that a kernel with `demands` gathers of all
// results of `problem`. Null where the template does not take that.
std::optional<Correlation> ChooseCorrelation(const ConvProblem& problem,
                                             const ConvDemands& demands,
                                             Grade grade, const Target& target);

// Bytes of what the first kernel leaves for the second in memory.
int64_t CorrelationBytes(const ConvProblem& problem,
                         const Correlation& correlation);

// Blocks of the first that share a multiprocessor: there is shared memory for
// as many, and its launch bounds see to registers.
inline constexpr int kResidentCorrelators = 2;

// Shared memory of a block of each, in bytes: the sizes of Correlator::Shared
// (correlator.cuh) and CorrelatedStates::Shared (correlated_states.cuh).
int64_t CorrelatorBytes(const ConvProblem& problem);
int64_t CorrelatedStatesBytes(const ConvProblem& problem);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CORRELATION_H_
