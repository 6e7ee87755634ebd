#include "jit/compile/conv_cost.h"

#include <algorithm>

#include "jit/compile/conv_part_cost.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// Until input is laid down: a launch, of which a part is hidden, and what is
// read and written, where the L2 is full of what others have written. Of four
// plans on an H100.
double LayingCycles(const ConvGeometry& g, int sm_count) {
  constexpr double kCyclesOfLaying = 4000.0;
  constexpr double kLaidBytesPerCycle = 8.5;
  const Dims4& input = g.problem.input;
  const auto bytes =
      static_cast<double>(input[0] * input[1] * input[2] * input[3] *
                              ElementSize(g.problem.input_type) +
                          g.laid_lines().bytes());
  return kCyclesOfLaying + bytes / (kLaidBytesPerCycle * sm_count);
}

// What tiles of warps take longer on an H100 than their model says, in the mean
// of six that warpgroups could have had (docs/kernel-notes).
constexpr double kWarpsSlowedOnHopper = 1.5;
// The same of operands of 16 bits with few channels, which warpgroups scale for
// fuller octets, or bring in pairs of columns, as of f32: by hand, so that the
// faster of them are chosen for six plans, and for 20.
constexpr double kWarpsSlowedByFewHalves = 4.5;
constexpr double kWarpsSlowedByPairs = 2.2;

double WarpsSlowed(const ConvProblem& problem, const Target& target) {
  if (target.arch != "sm_90a") return 1.0;
  if (problem.scales_few_halves() ||
      (problem.pairs_columns() && problem.takes_as_stored())) {
    return kWarpsSlowedByFewHalves;
  }
  return problem.pairs_columns() ? kWarpsSlowedByPairs : kWarpsSlowedOnHopper;
}

// Of what warps store, each element: in rows of whole sectors, and in others,
// of which a store of eight pixels touches two sectors, both in part; and what
// counts of it, or of all else, where that is less. From 130 tiles of 26 plans
// of few channels on an H200, measured in what warpgroups are predicted to take
// there, which is a quarter more than they do.
constexpr double kCyclesPerStored = 0.49;
constexpr double kCyclesPerStoredApart = 1.4;
constexpr double kShareOfLess = 0.1;
constexpr int64_t kSectorBytes = 32;

double WarpStoringCycles(const ConvGeometry& g, const ConvDemands& demands) {
  if (!demands.stores) return 0.0;
  const int64_t row = g.problem.output[3] * ElementSize(demands.stored_type);
  const double each =
      row % kSectorBytes == 0 ? kCyclesPerStored : kCyclesPerStoredApart;
  return each *
         static_cast<double>(g.resident_blocks * g.rows() * g.block_channels());
}

double WarpCycles(const ConvGeometry& g, const ConvDemands& demands,
                  const Target& target) {
  const double all =
      WarpTileCycles(g, demands) * WarpsSlowed(g.problem, target);
  if (target.arch != "sm_90a") return all;
  const double storing = WarpStoringCycles(g, demands);
  return std::max(all, storing) + kShareOfLess * std::min(all, storing);
}

}  // namespace

double TileCycles(const ConvGeometry& g, const ConvDemands& demands,
                  const Target& target) {
  return g.has_groups() ? GroupTileCycles(g, demands) * ShareOfParts(g, demands)
                        : WarpCycles(g, demands, target);
}

double ConvCycles(const ConvGeometry& g, double tile_cycles, int sm_count) {
  const int64_t waves =
      CeilDiv(g.blocks(), static_cast<int64_t>(sm_count) * g.resident_blocks);
  const double before =
      g.has_groups() ? GroupBlockCycles(g) : WarpBlockCycles();
  return static_cast<double>(waves) *
             (before + tile_cycles * static_cast<double>(g.tiles_per_block *
                                                         g.rounds())) +
         (g.lays_lines && !g.problem.input_is_laid ? LayingCycles(g, sm_count)
                                                   : 0.0);
}

double ConvCycles(const ConvGeometry& g, const ConvDemands& demands,
                  const Target& target) {
  return ConvCycles(g, TileCycles(g, demands, target),
                    std::max(target.sm_count, 1));
}

}  // namespace kiln
