#include "jit/compile/schedule_candidates.h"

#include <algorithm>

#include "fmt/format.h"
#include "jit/compile/conv_search.h"
#include "jit/compile/conv_states.h"
#include "jit/compile/direct_spec.h"
#include "jit/compile/linear_tile.h"

namespace kiln {
namespace {

std::string InputOf(const ConvGeometry& g) {
  if (g.lays_lines) return "channels by laid lines";
  if (g.takes_lines) return "channels by lines";
  if (g.rows_of_eight()) {
    return g.channel_rows ? "channels by eights" : "pixels by eights";
  }
  if (g.channel_rows) return "channels";
  return g.run_columns > 0 ? "pixels by rows" : "pixels";
}

// Rows by columns of the product, each a warpgroup or a warp.
std::string KindOf(const ConvGeometry& g) {
  if (!g.has_groups()) {
    return fmt::format("{} x {} warps", g.warps_m, g.warps_n);
  }
  std::string kind =
      fmt::format("{} x {} warpgroups, {}", g.groups_m, g.groups_n, InputOf(g));
  if (g.problem.joined > 1) {
    kind += fmt::format(", {} groups joined", g.problem.joined);
  }
  if (g.problem.has_channel_phases()) kind += ", phases as channels";
  if (g.turns_lines) kind += ", lines turned";
  if (g.batches_ahead > 0) kind += ", copied ahead";
  if (g.row_parts > 1) kind += fmt::format(", filter in {}", g.row_parts);
  if (g.sum_blocks > 1) kind += fmt::format(", {} share sums", g.sum_blocks);
  return kind;
}

std::string PhasesText(const ConvGeometry& g) {
  if (g.merges_rows) return " in all phases";
  if (!g.merges_phases()) return "";
  if (g.phases(1) == 2) return " in both phases";
  return fmt::format(" in {} of {} phases", g.column_phases, g.phases(1));
}

std::string DetailOf(const ConvGeometry& g) {
  return fmt::format(
      "tile {} x {}{}{}, {} of {} channels, chunks of {} of {}, {} blocks "
      "of {} tile{}, {} resident{}",
      g.tile_h, g.tile_w, PhasesText(g),
      g.images == 1 ? "" : fmt::format(" of {} images", g.images),
      std::min(g.block_channels(), g.problem.group_outputs()),
      g.problem.group_outputs(), g.chunk, g.problem.group_inputs(), g.blocks(),
      g.tiles_per_block, g.tiles_per_block == 1 ? "" : "s", g.resident_blocks,
      g.holds_images() || g.rounds() > 1
          ? fmt::format(", in each of {} rounds", g.rounds())
          : "");
}

std::string RefusalOf(const ConvLayout& layout) {
  return fmt::format("no tile fits: {} lack registers, {} lack shared memory",
                     layout.short_of_registers, layout.short_of_shared_memory);
}

void TakeCycles(double cycles, const KnownDevice* device,
                ScheduleCandidate* candidate) {
  candidate->cycles = cycles;
  if (device == nullptr) return;
  candidate->microseconds = cycles / device->boost_clock_mhz;
}

ScheduleCandidate CandidateOf(const ConvLayout& layout, const Kernel& kernel,
                              const KnownDevice* device) {
  ScheduleCandidate candidate;
  candidate.kind = KindOf(layout.layout);
  candidate.fits = layout.best.has_value();
  if (!candidate.fits) {
    candidate.reason = RefusalOf(layout);
    return candidate;
  }
  candidate.detail = DetailOf(*layout.best);
  ConvGeometry best = *layout.best;
  best.in_turns = kernel.conv->in_turns;
  candidate.chosen = best == *kernel.conv && !kernel.correlation;
  TakeCycles(layout.cycles, device, &candidate);
  return candidate;
}

ScheduleCandidate CandidateOf(const Correlation& correlation,
                              const Kernel& kernel, const KnownDevice* device) {
  ScheduleCandidate candidate;
  candidate.kind = "correlations of the input";
  candidate.fits = true;
  candidate.detail = fmt::format(
      "{} blocks, {} for the rows and {} for the columns of an image",
      kernel.conv->problem.input[0] * correlation.strips *
          correlation.column_blocks,
      correlation.strips, correlation.column_blocks);
  candidate.chosen = kernel.correlation == correlation;
  TakeCycles(correlation.cycles, device, &candidate);
  return candidate;
}

std::string KindOf(const RowCandidate& candidate) {
  if (!candidate.geometry) return "two kernels";
  switch (candidate.geometry->keeper) {
    case RowKeeper::kWarp:
      return candidate.geometry->is_in_warp() ? "one warp"
                                              : "registers of a block";
    case RowKeeper::kColumns:
      return "columns of a block";
    case RowKeeper::kTeam:
      if (!candidate.geometry || candidate.geometry->teams == 1) {
        return "whole grid";
      }
      return fmt::format("teams of {} blocks", candidate.geometry->team);
    case RowKeeper::kChain:
      if (candidate.geometry->cluster == 1) return "through all reductions";
      return fmt::format("all reductions {} {}",
                         candidate.geometry->splits ? "in" : "by",
                         candidate.geometry->cluster);
    case RowKeeper::kWarpChain:
      return "all in registers";
    case RowKeeper::kBlock:
      break;
  }
  if (candidate.geometry->cluster == 1) return "one block";
  return fmt::format("clusters of {} blocks", candidate.geometry->cluster);
}

std::string DetailOf(const RowGeometry& rows) {
  if (rows.keeper == RowKeeper::kTeam) {
    return fmt::format(
        "{} blocks share a row, {} chunks of {} elements each, {} blocks",
        rows.team, rows.chunks, rows.chunk, rows.blocks());
  }
  return fmt::format("{} of {} threads share a row, vectors of {}, {} blocks",
                     rows.lanes, rows.threads, rows.vector, rows.blocks());
}

ScheduleCandidate CandidateOf(const RowCandidate& seen, const Kernel& kernel) {
  ScheduleCandidate candidate;
  const bool is_chain = kernel.row_work->reductions > 1;
  candidate.kind =
      is_chain && !seen.geometry ? "a kernel for each" : KindOf(seen);
  candidate.fits = seen.refusal.empty();
  candidate.reason = seen.refusal;
  if (!candidate.fits) return candidate;
  candidate.detail = seen.geometry ? DetailOf(*seen.geometry)
                     : is_chain
                         ? "each reduction reads the rows"
                         : "statistics, then results: reads the rows twice";
  std::optional<RowGeometry> chosen = kernel.rows;
  // How it is launched, and which caches keep what it reads, is not weighed.
  if (chosen) {
    chosen->resident = true;
    chosen->streams = false;
  }
  candidate.chosen = seen.geometry == chosen;
  // What fits in a warp is not weighed: it always wins.
  if (seen.microseconds > 0) candidate.microseconds = seen.microseconds;
  return candidate;
}

}  // namespace

std::vector<ScheduleCandidate> ConvCandidates(const Schedule& schedule,
                                              const Kernel& kernel,
                                              ConvOptions options) {
  const LoweredPlan& plan = schedule.lowered;
  ConvSearch search;
  options.search = &search;
  // That of a chosen tile may have its groups joined, or phases as channels.
  ChooseConvGeometry(ConvProblemOf(plan, plan.nodes[kernel.group.anchor]),
                     kernel.demands, options);
  const KnownDevice* const device = FindKnownDevice(options.target);
  std::vector<ScheduleCandidate> candidates;
  for (const ConvLayout& layout : search.Layouts()) {
    candidates.push_back(CandidateOf(layout, kernel, device));
  }
  return candidates;
}

std::optional<ScheduleCandidate> CorrelationCandidate(
    const Schedule& schedule, const Kernel& kernel,
    const ConvOptions& options) {
  const auto correlation =
      CorrelationFor(schedule, kernel, options.grade, options.target);
  if (!correlation) return std::nullopt;
  return CandidateOf(*correlation, kernel, FindKnownDevice(options.target));
}

std::vector<ScheduleCandidate> LinearCandidates(const Schedule& schedule,
                                                const Kernel& kernel,
                                                Grade grade,
                                                const Target& target) {
  const LoweredPlan& plan = schedule.lowered;
  const Node& node = plan.nodes[kernel.group.anchor];
  const KnownDevice* const device = FindKnownDevice(target);
  std::vector<ScheduleCandidate> candidates;
  for (const LinearWay& way : LinearWays(plan, node, grade, target)) {
    ScheduleCandidate& candidate = candidates.emplace_back();
    candidate.kind = way.tile.As<DenseTile>() ? "lanes" : "warpgroups";
    candidate.detail = WhyDirect(way.tile);
    candidate.chosen = way.tile == node.direct;
    if (way.cycles) TakeCycles(*way.cycles, device, &candidate);
  }
  return candidates;
}

int CountFitting(const std::vector<ScheduleCandidate>& candidates) {
  return static_cast<int>(
      std::count_if(candidates.begin(), candidates.end(),
                    [](const ScheduleCandidate& c) { return c.fits; }));
}

std::vector<ScheduleCandidate> RowCandidates(const Kernel& kernel,
                                             const Target& target) {
  std::vector<ScheduleCandidate> candidates;
  for (const RowCandidate& candidate :
       RankRowGeometries(*kernel.row_work, target)) {
    candidates.push_back(CandidateOf(candidate, kernel));
  }
  return candidates;
}

}  // namespace kiln
