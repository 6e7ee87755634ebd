#include "jit/compile/conv_search.h"

#include <algorithm>

namespace kiln {
namespace {

bool HaveOneLayout(const ConvGeometry& a, const ConvGeometry& b) {
  if (a.has_groups() != b.has_groups()) return false;
  if (!a.has_groups()) return a.warps_m == b.warps_m && a.warps_n == b.warps_n;
  return a.groups_m == b.groups_m && a.groups_n == b.groups_n &&
         a.channel_rows == b.channel_rows && a.takes_lines == b.takes_lines &&
         a.lays_lines == b.lays_lines && a.turns_lines == b.turns_lines &&
         a.batches_ahead == b.batches_ahead && a.run_columns == b.run_columns &&
         a.sum_blocks == b.sum_blocks && a.row_parts == b.row_parts &&
         a.problem.joined == b.problem.joined &&
         a.problem.channel_phases == b.problem.channel_phases;
}

std::optional<ConvGeometry> Search(const ConvProblem& problem,
                                   const ConvDemands& demands,
                                   const ConvOptions& options, int rank) {
  if (rank == 0) return ChooseConvGeometry(problem, demands, options);
  ConvSearch search;
  ConvOptions listening = options;
  listening.search = &search;
  std::optional<ConvGeometry> geometry =
      ChooseConvGeometry(problem, demands, listening);
  for (const ConvLayout& layout : search.Layouts()) {
    if (!layout.best) break;
    geometry = layout.best;
    if (rank-- == 0) break;
  }
  return geometry;
}

}  // namespace

ConvLayout& ConvSearch::LayoutOf(const ConvGeometry& geometry) {
  for (ConvLayout& known : layouts_) {
    if (HaveOneLayout(known.layout, geometry)) return known;
  }
  layouts_.emplace_back();
  layouts_.back().layout = geometry;
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

const KnownTiles::Choice* KnownTiles::Find(const ConvProblem& problem,
                                           const ConvDemands& demands,
                                           int rank) const {
  for (const Known& known : known_) {
    if (known.rank == rank && known.problem == problem &&
        known.demands == demands) {
      return &known.choice;
    }
  }
  return nullptr;
}

void KnownTiles::Keep(const ConvProblem& problem, const ConvDemands& demands,
                      int rank, const Choice& choice) {
  known_.push_back({problem, demands, rank, choice});
}

std::optional<ConvGeometry> ChooseConvGeometryOfRank(const ConvProblem& problem,
                                                     const ConvDemands& demands,
                                                     const ConvOptions& options,
                                                     int rank) {
  if (options.known == nullptr) {
    return Search(problem, demands, options, rank);
  }
  const KnownTiles::Choice* const known =
      options.known->Find(problem, demands, rank);
  if (known != nullptr) return *known;
  std::optional<ConvGeometry> geometry =
      Search(problem, demands, options, rank);
  options.known->Keep(problem, demands, rank, geometry);
  return geometry;
}

}  // namespace kiln
