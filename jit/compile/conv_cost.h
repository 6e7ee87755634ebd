#ifndef KILN_JIT_COMPILE_CONV_COST_H_
#define KILN_JIT_COMPILE_CONV_COST_H_

#include "jit/artifact/target.h"
#include "jit/compile/conv_geometry.h"

namespace kiln {

// A model, good for comparing tiles of one convolution, not for predicting
// times.

// Of memory, for each multiprocessor: 3.0 TB/s for 132 at 1.74 GHz.
inline constexpr double kMovedBytesPerCycle = 13.0;
// A kernel more, the gap before it, and merging states for it, on an H100.
inline constexpr double kCyclesOfLaunch = 7000.0;
// Of ops on each element (ConvDemands::instructions), those of P4: more of them
// cost more than models that were fitted to few say.
inline constexpr int64_t kFewInstructionsOfOps = 21;

// Cycles of a multiprocessor of `target` for one tile of each of its resident
// blocks.
double TileCycles(const ConvGeometry& geometry, const ConvDemands& demands,
                  const Target& target);

// Cycles until the last block of a convolution is done on a device with
// `sm_count` multiprocessors, where a tile takes `tile_cycles`.
double ConvCycles(const ConvGeometry& geometry, double tile_cycles,
                  int sm_count);

// The same on `target`, of which one multiprocessor is counted where it has
// not been said how many there are.
double ConvCycles(const ConvGeometry& geometry, const ConvDemands& demands,
                  const Target& target);

// The same where blocks hold images (conv_held_cost.cc).
double HeldCycles(const ConvGeometry& geometry, const ConvDemands& demands);

// What these are made of: the same of tiles of warps (conv_warp_cost.cc) and of
// warpgroups (conv_group_cost.cc), and the cycles before the first tile of a
// block. Each has constants of its own, so that neither moves when the other is
// fitted.
double WarpTileCycles(const ConvGeometry& geometry, const ConvDemands& demands);
double WarpBlockCycles();
double GroupTileCycles(const ConvGeometry& geometry,
                       const ConvDemands& demands);
double GroupBlockCycles(const ConvGeometry& geometry);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_COST_H_
