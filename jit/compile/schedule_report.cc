#include "jit/compile/schedule_report.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "jit/compile/direct_spec.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/kernel_traffic.h"
#include "jit/compile/schedule.h"
#include "jit/compile/schedule_candidates.h"
#include "jit/compile/schedule_rewrites.h"

namespace kiln {
namespace {

// Of the data sheet's rate, what a plain copy reaches: 3.00 of 3.35 TB/s on an
// H100 (docs/kernel-notes).
constexpr double kCopyShare = 0.9;
// Of those that fit; plans have up to a dozen.
constexpr int kShownCandidates = 6;

constexpr char kFewestCycles[] = "fewest predicted cycles";

// Without candidates that fit, are not chosen and are slower than six others.
std::vector<ScheduleCandidate> Shown(
    const std::vector<ScheduleCandidate>& candidates) {
  std::vector<ScheduleCandidate> shown;
  int fitting = 0;
  for (const ScheduleCandidate& candidate : candidates) {
    if (candidate.fits && ++fitting > kShownCandidates && !candidate.chosen) {
      continue;
    }
    shown.push_back(candidate);
  }
  return shown;
}

// In the order of cycles, behind those that take as many.
void Insert(const ScheduleCandidate& candidate,
            std::vector<ScheduleCandidate>* candidates) {
  const auto place =
      std::find_if(candidates->begin(), candidates->end(),
                   [&](const ScheduleCandidate& other) {
                     return !other.fits || *other.cycles > *candidate.cycles;
                   });
  candidates->insert(place, candidate);
}

// Reports one schedule of a plan.
class Reporting {
 public:
  Reporting(const CanonicalPlan& plan, const Target& target,
            const Schedule& schedule, const Tuning& tuning,
            const Schedule& first)
      : plan_(plan),
        target_(target),
        schedule_(schedule),
        tuning_(tuning),
        first_(first),
        device_(FindKnownDevice(target)) {}

  VariantReport Run() && {
    variant_.requires_ = schedule_.requires_;
    variant_.workspace_bytes = schedule_.workspace_bytes;
    variant_.prepared_bytes = schedule_.prepared_bytes;
    variant_.rewrites = RewritesOf(plan_, schedule_);
    for (const Kernel& kernel : schedule_.kernels) {
      variant_.kernels.push_back(Report(kernel));
    }
    return std::move(variant_);
  }

 private:
  const Node& NodeAt(int index) const { return schedule_.lowered.nodes[index]; }

  KernelReport Report(const Kernel& kernel) {
    const KernelSpec spec = MakeKernelSpec(schedule_, kernel);
    KernelReport report;
    report.symbol = spec.entries.front().symbol;
    report.computes = spec.formula;
    report.prepares = kernel.prepares;
    report.grid = spec.entries.front().grid;
    report.threads = spec.entries.front().threads;
    report.dynamic_shared_bytes = spec.entries.front().dynamic_shared_bytes;
    report.read_bytes = BytesRead(schedule_, kernel);
    report.written_bytes = BytesWritten(schedule_, kernel);
    Explain(kernel, &report);
    return report;
  }

  void Explain(const Kernel& kernel, KernelReport* report) {
    if (device_ != nullptr) {
      report->microseconds =
          static_cast<double>(report->read_bytes + report->written_bytes) /
          (device_->memory_gb_per_s * 1e3 * kCopyShare);
    }
    if (kernel.packs()) {
      report->why = "brings weights into the order of the tensor cores";
    } else if (kernel.lays()) {
      report->why =
          "brings input into halves with a scale for each pixel, once for all "
          "blocks";
    } else if (kernel.splits()) {
      report->why =
          "brings rows into halves with a scale for each, as tensor cores read "
          "them";
    } else if (kernel.bounds_results()) {
      report->why = "finds how large results can be, for the scales of pixels";
    } else if (kernel.conv) {
      ExplainConvolution(kernel, report);
    } else if (kernel.row_work) {
      report->candidates = RowCandidates(kernel, target_);
      report->why = WhyRows(kernel, report->candidates);
      if (kernel.rows) TakeTime(report);
    } else {
      ExplainPlain(kernel, report);
    }
    if (kernel.split_result) {
      report->why += "; leaves them in halves, as the next layer takes them";
    }
    if (kernel.backwards) {
      report->why +=
          "; from the end, which the L2 cache has from the kernel "
          "before";
    }
    if (kernel.fetches_early) {
      report->why += "; brings input while the kernel before ends";
    } else if (kernel.overlaps && Follows(kernel)) {
      report->why += "; begins while the kernel before ends";
    }
  }

  // Whether a kernel of the same launch runs before.
  bool Follows(const Kernel& kernel) const {
    for (const Kernel& other : schedule_.kernels) {
      if (&other == &kernel) return false;
      if (!other.prepares) return !kernel.prepares;
    }
    return false;
  }

  void ExplainConvolution(const Kernel& kernel, KernelReport* report) {
    const ConvOptions options = {plan_.plan.grade, target_, 0, nullptr};
    const std::vector<ScheduleCandidate> candidates =
        ConvCandidates(schedule_, kernel, options);
    report->candidates = Shown(candidates);
    if (const auto other = CorrelationCandidate(schedule_, kernel, options)) {
      Insert(*other, &report->candidates);
    }
    if (kernel.correlation) {
      report->why = WhyCorrelations(report->candidates);
      return TakeTime(report);
    }
    report->why =
        WhyConvolution(candidates) +
        TextOfBlocks(*kernel.conv, kernel.demands) + TextOfPacking(kernel) +
        (kernel.conv->reads_beside
             ? "; what ops read of other tensors is on its way before sums are"
             : "") +
        (kernel.conv->rounds_sums ? "; results are rounded in registers" : "") +
        (kernel.laid_results
             ? "; these are halves with a scale for each pixel, as the next "
               "convolution takes them"
             : "") +
        (kernel.conv->stores_sums ? "; elements are stored from registers"
                                  : "") +
        TextOfFinish(kernel) +
        (kernel.leaves_states && kernel.group.finish.empty()
             ? "; what blocks leave of statistics is merged by each block that "
               "needs them"
             : "");
    TakeTime(report);
  }

  // Of a tile.
  std::string WhyConvolution(
      const std::vector<ScheduleCandidate>& candidates) const {
    if (tuning_.conv == 0) return kFewestCycles;
    const int before = first_.RanksBeforeTiles();
    if (tuning_.conv > before) {
      return Tuned("tile number", tuning_.conv - before,
                   CountFitting(candidates));
    }
    std::vector<const char*> asked;
    if (first_.HoldsImages() && tuning_.conv == before) {
      asked.push_back("blocks that hold no images");
    }
    if (tuning_.correlations == 0) asked.push_back("no correlations");
    if (asked.empty()) return kFewestCycles;
    return fmt::format("the variant {} asks for {}", ToString(tuning_),
                       fmt::join(asked, ", and "));
  }

  // Of correlations, `candidates` being all there was.
  std::string WhyCorrelations(
      const std::vector<ScheduleCandidate>& candidates) const {
    const std::string reason =
        tuning_.correlations == 0 || candidates.front().chosen
            ? std::string(kFewestCycles)
            : fmt::format("the variant {} asks for correlations",
                          ToString(tuning_));
    return reason +
           "; statistics come from correlations of the input: results are not "
           "computed";
  }

  // `count`: of the candidates that `rank` counts.
  std::string Tuned(const char* what, int rank, int count) const {
    const std::string asks = fmt::format("the variant {} asks for {} {}",
                                         ToString(tuning_), what, rank + 1);
    if (rank < count) return asks + " instead of the first";
    return fmt::format("{}, which there is not: this is the last, number {}",
                       asks, count);
  }

  static std::string TextOfBlocks(const ConvGeometry& g,
                                  const ConvDemands& demands) {
    std::vector<std::string> held;
    if (demands.windows.any()) {
      const ConvWindows& windows = demands.windows;
      held.push_back(fmt::format("whole windows of {} x {}", windows.size[0],
                                 windows.size[1]));
      if (windows.overlap(0) + windows.overlap(1) > 0) {
        held.back() += " (what windows of two blocks share, both compute)";
      }
    }
    const int64_t group = demands.group_channels;
    if (group > 0) {
      held.push_back(
          fmt::format("{} normalised groups of {} channels",
                      g.PartsOfState(group) > 1 ? "parts of" : "whole", group));
    }
    if (demands.all_channels_in_a_block) held.push_back("all channels");
    if (held.empty()) return "";
    return fmt::format("; blocks hold {}", fmt::join(held, ", "));
  }

  // The tiles of an earlier kernel may have been chosen in vain.
  std::string TextOfPacking(const Kernel& kernel) const {
    if (!kernel.demands.packing.has_value()) return "";
    for (const Kernel& other : schedule_.kernels) {
      if (&other == &kernel) break;
      if (other.group.anchor == kernel.group.anchor && other.ReadsPacked() &&
          other.conv->packing() == kernel.conv->packing()) {
        return "; weights are read as packed for an earlier kernel";
      }
    }
    return "; weights are packed as for the tiles that correlations replace";
  }

  static std::string TextOfFinish(const Kernel& kernel) {
    if (kernel.group.finish.empty()) return "";
    if (kernel.conv->holds_images()) {
      return fmt::format(
          "; {} blocks hold {} on chip until its statistics are known, and "
          "apply the rest",
          kernel.conv->blocks_of_image(),
          kernel.conv->holds_windows() ? "an image's windows" : "an image");
    }
    return fmt::format(
        "; some warps of each block apply the rest to what was computed {} "
        "blocks earlier",
        kernel.lag);
  }

  static void TakeTime(KernelReport* report) {
    for (const ScheduleCandidate& candidate : report->candidates) {
      if (!candidate.chosen || !candidate.microseconds) continue;
      report->microseconds = candidate.microseconds;
    }
  }

  std::string WhyRows(const Kernel& kernel,
                      const std::vector<ScheduleCandidate>& candidates) const {
    if (tuning_.rows > 0) {
      return Tuned("number", tuning_.rows, CountFitting(candidates));
    }
    return kernel.rows && kernel.rows->is_in_warp()
               ? "the row fits in the registers of a warp"
               : "fewest predicted microseconds";
  }

  void ExplainPlain(const Kernel& kernel, KernelReport* report) const {
    report->why = WhyPlain(kernel);
    if (kernel.group.anchor < 0 || !NodeAt(kernel.group.anchor).direct) return;
    const std::vector<ScheduleCandidate> candidates =
        LinearCandidates(schedule_, kernel, plan_.plan.grade, target_);
    report->candidates = Shown(candidates);
    TakeTime(report);
    if (tuning_.linear == 0 || candidates.size() < 2) return;
    report->why +=
        "; " + Tuned("number", tuning_.linear, CountFitting(candidates));
  }

  std::string WhyPlain(const Kernel& kernel) const {
    if (kernel.group.anchor < 0) return "streams its tensors once";
    const Node& node = NodeAt(kernel.group.anchor);
    if (kernel.depthwise) {
      return fmt::format("a filter for each channel; {} x {} outputs a thread",
                         kernel.depthwise->rows, kernel.depthwise->columns);
    }
    if (node.direct) return WhyDirect(*node.direct);
    if (node.IsConvolution()) {
      return "the tensor cores of the target do not take this convolution";
    }
    if (node.kind == NodeKind::kPool2d) return "reads each window once";
    if (node.kind == NodeKind::kUnfold) {
      return "makes a convolution of 1 x 1 pixels of one that would fill tiles "
             "badly";
    }
    if (node.kind == NodeKind::kTurn) {
      return "a tile of pixels would hold one of each image";
    }
    if (node.kind == NodeKind::kSumColumns) {
      return "adds what the filter's columns have made apart";
    }
    if (node.kind == NodeKind::kJoin) {
      return "images with rows that begin anywhere lie side by side";
    }
    if (node.kind == NodeKind::kMosaic) {
      return "a tile would hold the few pixels of one image";
    }
    if (node.kind == NodeKind::kCut) return "results lie apart again";
    const std::string split =
        kernel.reduce->splits == 1
            ? ""
            : fmt::format(" in each of {} blocks", kernel.reduce->splits);
    return fmt::format("{} threads{} share an output", kernel.reduce->lanes,
                       split);
  }

  const CanonicalPlan& plan_;
  const Target& target_;
  const Schedule& schedule_;
  const Tuning& tuning_;
  const Schedule& first_;  // the models' choice, if `tuning_` asks for ranks
  const KnownDevice* const device_;
  VariantReport variant_;
};

}  // namespace

ScheduleReport ReportSchedules(const CanonicalPlan& plan, const Target& target,
                               const Tuning& tuning) {
  ScheduleReport report;
  if (target.is_cpu()) return report;
  if (const KnownDevice* const device = FindKnownDevice(target)) {
    report.device = std::string(device->name);
    report.clock_mhz = device->boost_clock_mhz;
    report.memory_gb_per_s = device->memory_gb_per_s;
  }
  const std::vector<Schedule> schedules =
      MakeSchedules(plan, target, Room::kTight, tuning);
  const Schedule first =
      tuning.conv > 0 ? MakeSchedules(plan, target).front() : schedules.front();
  for (const Schedule& schedule : schedules) {
    report.variants.push_back(
        Reporting(plan, target, schedule, tuning, first).Run());
  }
  return report;
}

}  // namespace kiln
