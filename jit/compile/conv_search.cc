#include "jit/compile/conv_search.h"

#include <algorithm>

namespace kiln {

ConvLayout& ConvSearch::LayoutOf(const ConvGeometry& g) {
  for (ConvLayout& layout : layouts_) {
    if (layout.warpgroups == g.warpgroups && layout.warps_m == g.warps_m &&
        layout.warps_n == g.warps_n) {
      return layout;
    }
  }
  layouts_.emplace_back();
  layouts_.back().warpgroups = g.warpgroups;
  layouts_.back().warps_m = g.warps_m;
  layouts_.back().warps_n = g.warps_n;
  return layouts_.back();
}

void ConvSearch::Fits(const ConvGeometry& geometry, double cycles) {
  ConvLayout& layout = LayoutOf(geometry);
  ++layout.fitting;
  if (layout.best && layout.cycles <= cycles) return;
  layout.best = geometry;
  layout.cycles = cycles;
}

void ConvSearch::LacksRegisters(const ConvGeometry& geometry) {
  ++LayoutOf(geometry).short_of_registers;
}

void ConvSearch::LacksSharedMemory(const ConvGeometry& geometry) {
  ++LayoutOf(geometry).short_of_shared_memory;
}

std::vector<ConvLayout> ConvSearch::Layouts() const {
  std::vector<ConvLayout> sorted = layouts_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const ConvLayout& a, const ConvLayout& b) {
                     if (a.best.has_value() != b.best.has_value()) {
                       return a.best.has_value();
                     }
                     return a.best && a.cycles < b.cycles;
                   });
  return sorted;
}

std::optional<ConvGeometry> ChooseConvGeometryOfRank(const ConvProblem& problem,
                                                     const ConvDemands& demands,
                                                     ConvOptions options,
                                                     int rank) {
  if (rank == 0) return ChooseConvGeometry(problem, demands, options);
  ConvSearch search;
  options.search = &search;
  std::optional<ConvGeometry> geometry =
      ChooseConvGeometry(problem, demands, options);
  for (const ConvLayout& layout : search.Layouts()) {
    if (!layout.best) break;
    geometry = layout.best;
    if (rank-- == 0) break;
  }
  return geometry;
}

}  // namespace kiln
