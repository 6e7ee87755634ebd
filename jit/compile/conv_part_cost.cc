#include "jit/compile/conv_part_cost.h"

#include "jit/compile/conv_shared.h"

namespace kiln {
namespace {

// So that the faster are chosen of 50 plans with filters of 7 x 7, that are cut
// or not. By eleven large filters with a stride and more than a few channels,
// parts of these take no longer, and of operands as they are stored less.
double ShareOfRowParts(const ConvGeometry& g) {
  constexpr int64_t kFewestTaps = 25;
  constexpr double kSlowed = 1.13;
  constexpr double kShareAsStored = 0.9;
  if (g.row_parts == 1) return 1.0;
  const ConvProblem& p = g.problem;
  const bool is_large_with_stride = p.stride[0] > 1 && p.dilation[0] == 1 &&
                                    p.taps() >= kFewestTaps &&
                                    g.octet_columns == 1;
  if (!is_large_with_stride) return kSlowed;
  return p.takes_as_stored() ? kShareAsStored : 1.0;
}

// Of rows of eight pixels: from eight plans in three types.
double SlowedByEights(const ConvProblem& p) {
  constexpr double kSlowed = 1.05;
  constexpr double kSlowedAsStored = 1.18;
  return p.takes_as_stored() ? kSlowedAsStored : kSlowed;
}

// Lanes that are a stride apart read each sector once for each of its columns,
// from the L1 if there is any to speak of: with little, half of the 48 % that
// one plan took longer with 215 KB of shared memory than with 189, for the
// model knows of a part. Not of octets that lie in several columns, nor of
// operands as they are stored, which have not been timed so.
double SlowedByLittleL1(const ConvGeometry& g) {
  constexpr double kSlowed = 1.25;
  return g.problem.takes_as_stored() || g.octet_columns > 1 ? 1.0 : kSlowed;
}

// What joined groups take longer than others beside what the model says of
// both: 180 tiles of 28 plans in three types, each with a tenth (an H200).
double SlowedByJoining(const ConvProblem& p) {
  constexpr double kSlowed = 1.1;
  return p.joined > 1 ? kSlowed : 1.0;
}

}  // namespace

double ShareOfParts(const ConvGeometry& g, const ConvDemands& demands) {
  const double of_rows = ShareOfRowParts(g) * SlowedByJoining(g.problem);
  if (g.problem.stride[1] == 1) return of_rows;
  return of_rows * (g.rows_of_eight() ? SlowedByEights(g.problem) : 1.0) *
         (LeavesLittleL1(g, demands) ? SlowedByLittleL1(g) : 1.0);
}

}  // namespace kiln
