#include "jit/compile/conv_cost.h"

#include "jit/compile/rounding.h"

namespace kiln {

double TileCycles(const ConvGeometry& g, const ConvDemands& demands) {
  return g.has_groups() ? GroupTileCycles(g, demands)
                        : WarpTileCycles(g, demands);
}

double ConvCycles(const ConvGeometry& g, double tile_cycles, int sm_count) {
  const int64_t waves =
      CeilDiv(g.blocks(), static_cast<int64_t>(sm_count) * g.resident_blocks);
  const double before =
      g.has_groups() ? GroupBlockCycles(g) : WarpBlockCycles();
  return static_cast<double>(waves) *
         (before +
          tile_cycles * static_cast<double>(g.tiles_per_block * g.rounds()));
}

}  // namespace kiln
