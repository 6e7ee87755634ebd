// Longer than 400 lines because all ways to cut a plan are compared here.
#include "jit/compile/schedule.h"

#include <algorithm>
#include <set>
#include <utility>

#include "jit/compile/commute_pooling.h"
#include "jit/compile/compute_again.h"
#include "jit/compile/compute_capability.h"
#include "jit/compile/conv_cost.h"
#include "jit/compile/conv_finish.h"
#include "jit/compile/conv_fusion.h"
#include "jit/compile/conv_problem.h"
#include "jit/compile/conv_search.h"
#include "jit/compile/conv_states.h"
#include "jit/compile/conv_suppliers.h"
#include "jit/compile/depthwise_choice.h"
#include "jit/compile/direct_conv.h"
#include "jit/compile/fold_signals.h"
#include "jit/compile/gather_pixels.h"
#include "jit/compile/join_images.h"
#include "jit/compile/launch_overlap.h"
#include "jit/compile/lay_results.h"
#include "jit/compile/meet_reductions.h"
#include "jit/compile/mosaic_images.h"
#include "jit/compile/part_columns.h"
#include "jit/compile/pooling_order.h"
#include "jit/compile/reshape_images.h"
#include "jit/compile/row_residency.h"
#include "jit/compile/schedule_memory.h"
#include "jit/compile/split_softmax.h"
#include "jit/compile/split_totals.h"
#include "jit/compile/streamed_reads.h"
#include "jit/compile/turn_around.h"
#include "jit/compile/unfold_patches.h"
#include "jit/compile/value_demands.h"
#include "jit/compile/value_ranges.h"

namespace kiln {
namespace {

// Which kernels keep rows on chip.
enum class RowUse : uint8_t {
  kNone,
  kFree,     // all, but nothing is asked of the device
  kFastest,  // all
};

// Where statistics of a convolution come from correlations, if they can.
enum class Correlating : uint8_t {
  kNever,
  kWhereFaster,
  kAlways,
};

int SpareRegisters(Room room) {
  if (room == Room::kTight) return 0;
  return room == Room::kAmple ? 32 : 64;
}

class Scheduling {
 public:
  Scheduling(const CanonicalPlan& plan, const Target& target,
             LoweredPlan lowered, Room room, const RefusedTiles& refused,
             KnownTiles* known)
      : plan_(plan),
        target_(target),
        room_(room),
        refused_(refused),
        known_(known) {
    schedule_.lowered = std::move(lowered);
    FindRanges(&schedule_.lowered);
    FindDemands(plan.plan.grade, &schedule_.lowered);
    schedule_.homes.resize(schedule_.lowered.values.size());
    for (int i = 0; i < schedule_.lowered.num_inputs; ++i) {
      schedule_.homes[i] = Place{i, 0, plan.values[i].dtype};
    }
    for (size_t i = 0; i < schedule_.homes.size(); ++i) {
      const int viewed = schedule_.lowered.values[i].view_of;
      if (viewed >= 0) schedule_.homes[i] = schedule_.homes[viewed];
    }
  }

  // One kernel for each barrier.
  Schedule Plain() && {
    return Fill({GroupNodes(schedule_.lowered), {}, {}}, RowUse::kNone, 0);
  }

  // Has statistics of convolutions come from correlations.
  Scheduling& Correlate(Correlating correlating) {
    correlating_ = correlating;
    return *this;
  }

  // Whether statistics of any convolution might come from correlations: false
  // only where none can.
  bool MayCorrelate() const {
    const LoweredPlan& plan = schedule_.lowered;
    return std::any_of(plan.nodes.begin(), plan.nodes.end(),
                       [&](const Node& conv) {
                         return conv.IsConvolution() && IsNormalised(conv) &&
                                CanCorrelate(ConvProblemOf(plan, conv),
                                             plan_.plan.grade, target_);
                       });
  }

  // Convolutions on tensor cores. Where the first candidates hold images, the
  // fastest that do not are the second ones.
  ConvFusion Fuse(int conv_rank) const {
    if (room_ != Room::kTight) return Fuse(conv_rank, false);
    ConvFusion first = Fuse(0, true);
    if (conv_rank == 0) return first;
    const bool holds = std::any_of(
        first.geometry.begin(), first.geometry.end(),
        [](const auto& conv) { return conv.second.holds_images(); });
    return Fuse(holds ? conv_rank - 1 : conv_rank, false);
  }

  // Kernels of `fusion`, and of the rest, with rows kept on chip.
  Schedule Fast(ConvFusion fusion, RowUse rows, int row_rank) {
    return Fill(std::move(fusion), rows, row_rank);
  }

 private:
  ConvFusion Fuse(int conv_rank, bool holds) const {
    const ConvOptions options = {plan_.plan.grade,
                                 target_,
                                 SpareRegisters(room_),
                                 nullptr,
                                 room_ == Room::kWarps,
                                 &refused_,
                                 known_};
    ConvFusion fusion = FuseConvolutions(
        schedule_.lowered, GroupNodes(schedule_.lowered), options, conv_rank);
    if (room_ == Room::kTight) {
      FinishConvolutions(schedule_.lowered, options, holds, &fusion);
    }
    return fusion;
  }

  Schedule Finish() {
    AddCopies();
    AddCorrelations();
    AddSuppliers(plan_, &schedule_);
    for (Kernel& kernel : schedule_.kernels) {
      ChooseGeometry(&kernel);
      AddRequirements(kernel);
    }
    ScheduleMemory memory(target_, &schedule_);
    memory.AddStores();
    StreamReads(&schedule_);
    memory.LayOutWorkspace();
    TurnAround(plan_.plan, &schedule_);
    OverlapLaunches(target_, &schedule_);
    return std::move(schedule_);
  }

  Schedule Fill(ConvFusion fusion, RowUse rows, int row_rank) {
    std::vector<RowGroup> groups;
    if (rows != RowUse::kNone) {
      groups = KeepRowsOnChip(
          schedule_.lowered, target_, std::move(fusion.groups),
          {row_rank, rows == RowUse::kFree, room_ != Room::kTight});
    } else {
      for (KernelGroup& group : fusion.groups) {
        groups.push_back({std::move(group), std::nullopt});
      }
    }
    groups = ComputeAgain(schedule_.lowered, std::move(groups));
    for (RowGroup& group : groups) {
      const auto conv =
          fusion.geometry.find({group.group.anchor, group.group.tail});
      if (conv != fusion.geometry.end()) {
        AddConvolution(std::move(group.group), conv->second,
                       fusion.demands.at(conv->first), rows == RowUse::kFree);
      } else {
        AddKernel(std::move(group.group));
        schedule_.kernels.back().rows = std::move(group.rows);
        schedule_.kernels.back().row_work = std::move(group.work);
      }
    }
    return Finish();
  }

  void AddKernel(KernelGroup group) {
    schedule_.kernels.emplace_back();
    schedule_.kernels.back().group = std::move(group);
  }

  // `in_turns`: of blocks that hold images nothing is asked of the device.
  void AddConvolution(KernelGroup group, const ConvGeometry& geometry,
                      const ConvDemands& demands, bool in_turns) {
    AddKernel(std::move(group));
    schedule_.kernels.back().conv = geometry;
    schedule_.kernels.back().demands = demands;
    schedule_.kernels.back().conv->in_turns =
        geometry.holds_images() && in_turns;
  }

  void AddCorrelations() {
    for (Kernel& kernel : schedule_.kernels) {
      if (kernel.conv) kernel.correlation = ChosenCorrelation(kernel);
    }
  }

  bool IsNormalised(const Node& conv) const {
    const std::vector<Node>& nodes = schedule_.lowered.nodes;
    return std::any_of(nodes.begin(), nodes.end(), [&](const Node& node) {
      return node.kind == NodeKind::kReduce && node.op == OpKind::kGroupNorm &&
             node.Reads(conv.results[0]);
    });
  }

  // Outputs that are inputs: a kernel without nodes, one for each input.
  void AddCopies() {
    for (int input = 0; input < schedule_.lowered.num_inputs; ++input) {
      Kernel copy;
      copy.group.domain = schedule_.lowered.values[input].desc.dims;
      copy.stores = OutputsOf(schedule_, input);
      if (copy.stores.empty()) continue;
      schedule_.kernels.push_back(std::move(copy));
    }
  }

  void AddRequirements(const Kernel& kernel) {
    if (kernel.rows) Require(kernel.rows->requirements());
    if (kernel.computes() && kernel.conv && kernel.conv->holds_images()) {
      // All of a multiprocessor, of which the tile leaves little.
      Require(kernel.conv->requirements(MaxSharedBytes(target_)));
    }
  }

  void Require(const Requirements& more) {
    Requirements& all = schedule_.requires_;
    all.min_sm_count = std::max(all.min_sm_count, more.min_sm_count);
    all.cooperative |= more.cooperative;
    all.cluster_size = std::max(all.cluster_size, more.cluster_size);
    all.shared_optin_bytes =
        std::max(all.shared_optin_bytes, more.shared_optin_bytes);
  }

  // Of convolutions on tensor cores, and of rows, it has been chosen.
  void ChooseGeometry(Kernel* kernel) const {
    if (kernel->conv || kernel->rows || kernel->group.anchor < 0) return;
    const LoweredPlan& plan = schedule_.lowered;
    const Node& node = plan.nodes[kernel->group.anchor];
    if (node.kind == NodeKind::kConv2d && !node.direct) {
      kernel->depthwise = DepthwiseTileOf(plan, kernel->group, target_, room_);
    }
    if (node.kind != NodeKind::kReduce) return;
    kernel->reduce = ChooseReduceGeometry(
        ViewOf(node, plan.values[ValueOf(node.operands[0])].desc.dims),
        ReduceWorkOf(plan, kernel->group), target_.sm_count);
  }

  std::optional<Correlation> ChosenCorrelation(const Kernel& kernel) const {
    if (correlating_ == Correlating::kNever) return std::nullopt;
    std::optional<Correlation> correlation =
        CorrelationFor(schedule_, kernel, plan_.plan.grade, target_);
    if (correlating_ == Correlating::kAlways) return correlation;
    const ConvGeometry& g = *kernel.conv;
    const double direct = ConvCycles(g, kernel.demands, target_);
    if (correlation && correlation->cycles >= direct) correlation.reset();
    return correlation;
  }

  const CanonicalPlan& plan_;
  const Target& target_;
  const Room room_;
  const RefusedTiles& refused_;
  KnownTiles* const known_;
  Correlating correlating_ = Correlating::kNever;
  Schedule schedule_;
};

// Whether the models' choice has correlations, so that convolutions as they are
// fastest are the second candidates.
bool HasCorrelationsFirst(const Scheduling& start) {
  if (!start.MayCorrelate()) return false;
  return Scheduling(start)
             .Correlate(Correlating::kWhereFaster)
             .Fast(start.Fuse(0), RowUse::kFastest, 0)
             .CountCorrelations() > 0;
}

// The fastest, and one that asks nothing of the device; the search for tiles of
// convolutions takes most of the time, and is the same for both.
std::vector<Schedule> MakeFast(const Scheduling& start, const Tuning& tuning) {
  int rank = tuning.conv;
  if (rank > 0 && HasCorrelationsFirst(start)) --rank;
  const ConvFusion fusion = start.Fuse(rank);
  const Correlating correlating = tuning.correlations > 0 ? Correlating::kAlways
                                  : tuning.conv > 0       ? Correlating::kNever
                                                    : Correlating::kWhereFaster;
  const auto with = [&](RowUse rows) {
    return Scheduling(start)
        .Correlate(correlating)
        .Fast(fusion, rows, tuning.rows);
  };
  std::vector<Schedule> schedules = {with(RowUse::kFastest)};
  if (schedules.back().requires_ != Requirements{}) {
    schedules.push_back(with(RowUse::kFree));
  }
  return schedules;
}

// As MakeSchedules has them.
struct Choices {
  Room room;
  const Tuning& tuning;
  const RefusedTiles& refused;
  KnownTiles* known;
  PoolingOrder pooling = PoolingOrder::kWhereFaster;
};

// A plan and its schedules.
struct Scheduled {
  LoweredPlan values;
  std::vector<Schedule> schedules;
};

// `values` as `split` has them for those of `results` of which that is not
// `in_vain`; null if it is of all. `make` schedules a plan.
template <typename Split, typename InVain, typename Make>
std::optional<Scheduled> SplitWhereHeld(const LoweredPlan& values,
                                        std::set<int> results, Split split,
                                        InVain in_vain, const Make& make) {
  while (!results.empty()) {
    LoweredPlan with = split(values, results);
    std::vector<Schedule> schedules = make(with);
    const std::set<int> vain = in_vain(schedules.front(), results);
    if (vain.empty()) return Scheduled{std::move(with), std::move(schedules)};
    for (const int result : vain) results.erase(result);
  }
  return std::nullopt;
}

// With pooling in front of norms, if a convolution's kernel does that and takes
// less time so, and with totals and softmax split where kernels hold the rows.
std::vector<Schedule> MakeFast(const CanonicalPlan& plan, const Target& target,
                               const LoweredPlan& lowered,
                               const Choices& choices) {
  const auto make = [&](const LoweredPlan& values, const Tuning& tuning) {
    return MakeFast(Scheduling(plan, target, values, choices.room,
                               choices.refused, choices.known),
                    tuning);
  };
  const bool stays = choices.pooling == PoolingOrder::kBehind;
  LoweredPlan values = stays ? lowered : CommutePooling(lowered);
  std::vector<Schedule> schedules = make(values, choices.tuning);
  const bool is_early = PoolsEarlyInPlace(schedules.front());
  const bool compares = choices.pooling == PoolingOrder::kWhereFaster &&
                        PoolsWhatTilesShare(values);
  if (!is_early || compares) {
    std::vector<Schedule> behind = make(lowered, choices.tuning);
    if (!is_early ||
        IsFasterBehind(schedules.front(), behind.front(), target)) {
      values = lowered;
      schedules = std::move(behind);
      for (Schedule& schedule : schedules) schedule.pools_behind = is_early;
    }
  }
  const auto make_first = [&](const LoweredPlan& split) {
    Tuning first_rows = choices.tuning;
    first_rows.rows = 0;
    return make(split, first_rows);
  };
  Scheduled chosen = {std::move(values), std::move(schedules)};
  const auto take = [&](std::optional<Scheduled> split) {
    if (!split) return;
    chosen = *std::move(split);
    if (choices.tuning.rows == 0) return;
    chosen.schedules = make(chosen.values, choices.tuning);
  };
  take(SplitWhereHeld(chosen.values, TotalsOfRows(chosen.values), SplitTotals,
                      TakenInVain, make_first));
  take(SplitWhereHeld(chosen.values, SoftmaxOfColumns(chosen.schedules.front()),
                      SplitSoftmax, SplitInVain, make_first));
  return std::move(chosen.schedules);
}

// `schedules`, of `lowered`, or if the models say that it is faster others in
// which convolutions leave lines for the next: value by value.
std::vector<Schedule> WithLaidResults(const CanonicalPlan& plan,
                                      const Target& target,
                                      const LoweredPlan& lowered,
                                      Choices choices,
                                      std::vector<Schedule> schedules) {
  choices.pooling = schedules.front().pools_behind ? PoolingOrder::kBehind
                                                   : PoolingOrder::kInFront;
  LaidValues laid;
  for (const auto& value : ResultsToLay(plan.plan, schedules.front())) {
    LaidValues values = laid;
    values.insert(value);
    std::vector<Schedule> with =
        MakeFast(plan, target, LayResults(lowered, values), choices);
    const bool are_laid = std::all_of(
        with.begin(), with.end(),
        [&](const Schedule& schedule) { return AreLaid(schedule, values); });
    if (!are_laid || ConvolutionCycles(with.front(), target) >=
                         ConvolutionCycles(schedules.front(), target)) {
      continue;
    }
    laid = std::move(values);
    schedules = std::move(with);
  }
  return schedules;
}

}  // namespace

int64_t Schedule::CountCorrelations() const {
  return std::count_if(
      kernels.begin(), kernels.end(),
      [](const Kernel& kernel) { return kernel.correlation.has_value(); });
}

bool Schedule::HoldsImages() const {
  return std::any_of(kernels.begin(), kernels.end(), [](const Kernel& kernel) {
    return kernel.conv && kernel.conv->holds_images();
  });
}

int Schedule::RanksBeforeTiles() const {
  return (CountCorrelations() > 0 ? 1 : 0) + (HoldsImages() ? 1 : 0);
}

std::vector<Schedule> MakeSchedules(const CanonicalPlan& plan,
                                    const Target& target, Room room,
                                    const Tuning& tuning,
                                    const RefusedTiles& refused) {
  if (room == Room::kPlain) {
    return {
        Scheduling(plan, target, Lower(plan), room, refused, nullptr).Plain()};
  }
  KnownTiles known;
  const Choices choices = {room, tuning, refused, &known};
  LoweredPlan lowered =
      DirectConvolutions(MeetReductions(Lower(plan)), plan.plan.grade, target,
                         tuning.linear, SpareRegisters(room));
  const bool is_hopper = target.arch == "sm_90a";
  if (ComputeCapability(target) >= 80) {
    lowered = UnfoldPatches(GatherPixels(std::move(lowered)), is_hopper);
  }
  if (is_hopper) {
    lowered = FoldSignals(MosaicImages(std::move(lowered), plan.plan.grade,
                                       target, tuning.image_use()));
    if (room != Room::kWarps) {
      lowered = PartColumns(std::move(lowered), plan.plan.grade, target);
    }
  }
  if (!is_hopper) return MakeFast(plan, target, lowered, choices);
  std::set<int> apart;  // results of convolutions that were not suited
  for (size_t before = 0;; before = apart.size()) {
    const LoweredPlan in_rows =
        ReshapeImages(JoinImages(lowered, tuning.image_use(), apart), apart);
    std::vector<Schedule> schedules = MakeFast(plan, target, in_rows, choices);
    for (const Schedule& schedule : schedules) {
      apart.merge(
          UnsuitedImages(schedule, {plan.plan.grade, target, 0, nullptr}));
    }
    if (apart.size() > before) continue;
    return WithLaidResults(plan, target, in_rows, choices,
                           std::move(schedules));
  }
}

int64_t ReducerStateBytes(const Node& reduce) {
  switch (reduce.op) {
    case OpKind::kAmax:
    case OpKind::kAmin:
      return 4;
    case OpKind::kSum:
    case OpKind::kMean:
      return 8;
    default:  // logsumexp, and the statistics of softmax and group_norm
      return 12;
  }
}

}  // namespace kiln
