// Longer than 400 lines because one class fills a Schedule, step upon step.
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
#include "jit/compile/conv_states.h"
#include "jit/compile/fold_signals.h"
#include "jit/compile/gather_pixels.h"
#include "jit/compile/join_images.h"
#include "jit/compile/launch_overlap.h"
#include "jit/compile/lay_results.h"
#include "jit/compile/lent_output.h"
#include "jit/compile/meet_reductions.h"
#include "jit/compile/reshape_images.h"
#include "jit/compile/rounding.h"
#include "jit/compile/row_residency.h"
#include "jit/compile/streamed_reads.h"
#include "jit/compile/turn_around.h"
#include "jit/compile/unfold_patches.h"
#include "jit/compile/value_demands.h"
#include "jit/compile/value_ranges.h"
#include "jit/compile/workspace.h"

namespace kiln {
namespace {

// What a team publishes for each row, one word for each member and a sector
// for the total: row_team.cu.
constexpr int64_t kTeamRecordBytes = 8;
constexpr int64_t kTeamTotalBytes = 32;
constexpr int64_t kTeamTagBytes = 8;

constexpr int64_t kCountBytes = 4;  // of conv_finish.cuh
constexpr int64_t kScaleBytes =
    2;  // of a pixel of laid results: laid_lines.cuh

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

class Scheduling {
 public:
  Scheduling(const CanonicalPlan& plan, const Target& target,
             LoweredPlan lowered, Room room)
      : plan_(plan),
        num_inputs_(static_cast<int>(plan.plan.inputs.size())),
        target_(target),
        room_(room) {
    schedule_.lowered = std::move(lowered);
    FindRanges(&schedule_.lowered);
    FindDemands(plan.plan.grade, &schedule_.lowered);
    schedule_.homes.resize(schedule_.lowered.values.size());
    for (int i = 0; i < num_inputs_; ++i) {
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
  ConvFusion Fuse(int spare_registers, int conv_rank) const {
    if (spare_registers > 0) return Fuse(spare_registers, conv_rank, false);
    ConvFusion first = Fuse(0, 0, true);
    if (conv_rank == 0) return first;
    const bool holds = std::any_of(
        first.geometry.begin(), first.geometry.end(),
        [](const auto& conv) { return conv.second.holds_images(); });
    return Fuse(0, holds ? conv_rank - 1 : conv_rank, false);
  }

  // Kernels of `fusion`, and of the rest, with rows kept on chip.
  Schedule Fast(ConvFusion fusion, RowUse rows, int row_rank) {
    return Fill(std::move(fusion), rows, row_rank);
  }

 private:
  ConvFusion Fuse(int spare_registers, int conv_rank, bool holds) const {
    ConvFusion fusion = FuseConvolutions(
        schedule_.lowered, GroupNodes(schedule_.lowered),
        {plan_.plan.grade, target_, spare_registers}, conv_rank);
    if (spare_registers == 0) {
      FinishConvolutions(schedule_.lowered, {plan_.plan.grade, target_}, holds,
                         &fusion);
    }
    return fusion;
  }

  // What lies in the workspace: a value, partial states, packed
  // weights, or counts of blocks.
  struct Buffer {
    int kernel = 0;  // that fills it
    int value = -1;  // -1: not a value
    Lifetime lifetime;
    bool counts = false;
  };

  Schedule Finish() {
    AddCopies();
    AddCorrelations();
    AddPackersAndLayers();
    for (size_t i = 0; i < schedule_.kernels.size(); ++i) {
      AddGeometry(static_cast<int>(i));
      AddStores(static_cast<int>(i));
    }
    StreamReads(&schedule_);
    PlaceWorkspace();
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

  // Before a convolution's first kernel the one that packs its weights; another
  // before the first one that reads them otherwise. Before one whose results
  // are laid down the one that bounds these. And before the first that takes
  // lines of some input the one that lays these down.
  void AddPackersAndLayers() {
    const std::vector<Kernel> kernels = std::exchange(schedule_.kernels, {});
    for (const Kernel& kernel : kernels) {
      const bool is_packed =
          std::any_of(kernels.begin(), kernels.end(), [&](const Kernel& other) {
            return other.ReadsPacked() && PacksLike(other, kernel);
          });
      if (is_packed && PackerOf(kernel) == nullptr) AddPacker(kernel);
      if (kernel.LaysResults()) AddBounder(kernel);
      if (kernel.TakesLaidLines() && !kernel.conv->problem.input_is_laid &&
          LayerOf(kernel) == nullptr) {
        AddLayer(kernel);
      }
      schedule_.kernels.push_back(kernel);
    }
  }

  void AddLayer(const Kernel& kernel) {
    Kernel layer;
    layer.group.anchor = kernel.group.anchor;
    layer.conv = kernel.conv;
    layer.role = KernelRole::kLays;
    schedule_.kernels.push_back(std::move(layer));
  }

  // All that it reads are parameters (lay_results.h).
  void AddBounder(const Kernel& kernel) {
    Kernel bounder;
    bounder.group.anchor = kernel.group.anchor;
    bounder.group.epilogue = kernel.group.epilogue;
    bounder.conv = kernel.conv;
    bounder.role = KernelRole::kBounds;
    bounder.prepares = true;
    bounder.bounds = TakePrepared(kBoundBytes);
    schedule_.kernels.push_back(std::move(bounder));
  }

  Place TakePrepared(int64_t bytes) {
    const Place place = {-1, schedule_.prepared_bytes, DataType::kF32,
                         Area::kPrepared};
    schedule_.prepared_bytes += RoundUp(bytes, kWorkspaceAlign);
    return place;
  }

  // Works at each launch where weights are an input or computed.
  void AddPacker(const Kernel& kernel) {
    const int operand = ValueOf(NodeAt(kernel.group.anchor).operands[1]);
    const int viewed = schedule_.lowered.values[operand].view_of;
    const int weight = viewed >= 0 ? viewed : operand;
    Kernel packer;
    packer.group.anchor = kernel.group.anchor;
    packer.conv = kernel.conv;
    packer.role = KernelRole::kPacks;
    packer.prepares = weight < num_inputs_ &&
                      plan_.plan.inputs[weight].role == InputRole::kParameter;
    if (packer.prepares) {
      packer.packed = TakePrepared(kernel.conv->packed_bytes());
    }
    schedule_.kernels.push_back(std::move(packer));
  }

  const Kernel* PackerOf(const Kernel& reader) const {
    for (const Kernel& kernel : schedule_.kernels) {
      if (kernel.packs() && PacksLike(kernel, reader)) return &kernel;
    }
    return nullptr;
  }
  static bool PacksLike(const Kernel& a, const Kernel& b) {
    return a.conv && b.conv && a.group.anchor == b.group.anchor &&
           a.conv->PacksLike(*b.conv);
  }

  bool IsNormalised(const Node& conv) const {
    const std::vector<Node>& nodes = schedule_.lowered.nodes;
    return std::any_of(nodes.begin(), nodes.end(), [&](const Node& node) {
      return node.kind == NodeKind::kReduce && node.op == OpKind::kGroupNorm &&
             node.Reads(conv.results[0]);
    });
  }

  // The kernel that lays down what a convolution reads.
  const Kernel* LayerOf(const Kernel& reader) const {
    for (const Kernel& kernel : schedule_.kernels) {
      if (kernel.lays() && InputOf(kernel) == InputOf(reader) &&
          kernel.conv->LaysLike(*reader.conv)) {
        return &kernel;
      }
    }
    return nullptr;
  }
  // The kernel that bounds what a convolution leaves as lines, for that kernel
  // and the one that lays its input down.
  const Kernel* BounderOf(const Kernel& kernel) const {
    if (!kernel.LaysResults() && !kernel.lays()) return nullptr;
    for (const Kernel& other : schedule_.kernels) {
      if (other.bounds_results() && other.group.anchor == kernel.group.anchor) {
        return &other;
      }
    }
    return nullptr;
  }
  int InputOf(const Kernel& conv) const {
    return ValueOf(NodeAt(conv.group.anchor).operands[0]);
  }

  const Node& NodeAt(int index) const { return schedule_.lowered.nodes[index]; }
  const TensorDesc& DescOf(int value) const {
    return schedule_.lowered.values[value].desc;
  }

  // Outputs that are inputs: a kernel without nodes, one for each input.
  void AddCopies() {
    for (int input = 0; input < num_inputs_; ++input) {
      if (OutputsOf(input).empty()) continue;
      Kernel copy;
      copy.group.domain = DescOf(input).dims;
      copy.stores = OutputsOf(input);
      schedule_.kernels.push_back(std::move(copy));
    }
  }

  std::vector<Store> OutputsOf(int value) const {
    std::vector<Store> stores;
    const std::vector<PlanOutput>& outputs = schedule_.lowered.outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].value.index != value) continue;
      const int slot = num_inputs_ + static_cast<int>(i);
      stores.push_back({value, {slot, 0, outputs[i].dtype}});
    }
    return stores;
  }

  // States that blocks leave. And what a team of them exchanges, which lies
  // apart from everything else, for the next launch goes on from it.
  void AddRowNeeds(int index) {
    Kernel& kernel = schedule_.kernels[index];
    const RowGeometry& rows = *kernel.rows;
    Require(rows.requirements());
    if (rows.splits) {
      kernel.partials = Place{};
      const int64_t bytes =
          rows.rows * rows.cluster * kernel.row_work->pass_state_bytes;
      buffers_.push_back({index, -1, {index, index, bytes}});
    }
    if (rows.keeper != RowKeeper::kTeam) return;
    kernel.partials = Place{};
    const int64_t bytes =
        rows.rows * (rows.team * kTeamRecordBytes + kTeamTotalBytes) +
        rows.blocks() * kTeamTagBytes;
    const int last = static_cast<int>(schedule_.kernels.size()) - 1;
    buffers_.push_back({index, -1, {0, last, bytes}});
  }

  void Require(const Requirements& more) {
    Requirements& all = schedule_.requires_;
    all.min_sm_count = std::max(all.min_sm_count, more.min_sm_count);
    all.cooperative |= more.cooperative;
    all.cluster_size = std::max(all.cluster_size, more.cluster_size);
    all.shared_optin_bytes =
        std::max(all.shared_optin_bytes, more.shared_optin_bytes);
  }

  void AddGeometry(int index) {
    Kernel& kernel = schedule_.kernels[index];
    if (kernel.conv.has_value()) return AddConvBuffers(index);
    if (kernel.rows.has_value()) return AddRowNeeds(index);
    if (kernel.group.anchor < 0) return;
    const Node& node = NodeAt(kernel.group.anchor);
    if (node.kind == NodeKind::kConv2d) return AddDepthwiseTile(index);
    if (node.kind != NodeKind::kReduce) return;

    const ReduceView view =
        ViewOf(node, DescOf(ValueOf(node.operands[0])).dims);
    kernel.reduce = ChooseReduceGeometry(
        view, ReduceWorkOf(schedule_.lowered, kernel.group), target_.sm_count);
    if (kernel.reduce->splits == 1) return;
    kernel.partials = Place{};
    const int64_t states = view.outputs() * kernel.reduce->splits;
    buffers_.push_back(
        {index, -1, {index, index, states * ReducerStateBytes(node)}});
  }

  void AddDepthwiseTile(int index) {
    if (room_ == Room::kPlain) return;
    Kernel& kernel = schedule_.kernels[index];
    const Node& node = NodeAt(kernel.group.anchor);
    if (node.wraps_rows) return;  // of which depthwise_conv2d.cu knows nothing
    const TensorDesc& input = DescOf(ValueOf(node.operands[0]));
    const TensorDesc& output = DescOf(node.results[0]);
    const DepthwiseWork work = {std::get<ConvAttributes>(node.attributes),
                                input.dims,
                                DescOf(ValueOf(node.operands[1])).dims,
                                output.dims,
                                SizeBytes(input) + SizeBytes(output),
                                SizeBytes(input) / NumElements(input.dims),
                                CountOperands(kernel.group.epilogue),
                                ComputeCapability(target_) >= 80};
    kernel.depthwise = ChooseDepthwiseTile(work, target_.sm_count);
    if (!kernel.depthwise || room_ == Room::kTight) return;
    if (kernel.depthwise->walks && room_ == Room::kAmple) {
      kernel.depthwise->min_blocks = 0;
      return;
    }
    const DepthwiseTile& tile = *kernel.depthwise;
    kernel.depthwise =
        DepthwiseTile{1, tile.vector, tile.vector, tile.holds_filter};
  }

  // The plan's inputs that these nodes read.
  int64_t CountOperands(const std::vector<int>& nodes) const {
    std::set<int> values;
    for (const int node : nodes) {
      for (const Operand& operand : NodeAt(node).operands) {
        const int value = ValueOf(operand);
        if (value < 0 || schedule_.lowered.values[value].producer >= 0)
          continue;
        values.insert(value);
      }
    }
    return static_cast<int64_t>(values.size());
  }

  // Input that is laid down, for all kernels that read it.
  void AddLaidLines(int index) {
    const Kernel& layer = schedule_.kernels[index];
    int last = index;
    for (size_t i = index; i < schedule_.kernels.size(); ++i) {
      const Kernel& kernel = schedule_.kernels[i];
      if (kernel.TakesLaidLines() && LayerOf(kernel) == &layer) {
        last = static_cast<int>(i);
      }
    }
    buffers_.push_back(
        {index, -1, {index, last, layer.conv->laid_lines().ReservedBytes()}});
  }

  // Packed weights of the workspace, and the partial states of a tail that
  // gathers statistics.
  void AddConvBuffers(int index) {
    const Kernel& kernel = schedule_.kernels[index];
    if (kernel.lays()) return AddLaidLines(index);
    if (kernel.packs() && !kernel.prepares) {
      int last = index;
      for (size_t i = index; i < schedule_.kernels.size(); ++i) {
        if (schedule_.kernels[i].group.anchor == kernel.group.anchor) {
          last = static_cast<int>(i);
        }
      }
      buffers_.push_back(
          {index, -1, {index, last, kernel.conv->packed_bytes()}});
    }
    if (kernel.group.tail < 0) return;
    const Node& tail = NodeAt(kernel.group.tail);
    const int64_t channels = ChannelsOfState(tail, kernel.group.domain);
    if (channels == 0) return;
    schedule_.kernels[index].partials = Place{};
    if (kernel.conv->holds_images()) return AddRecords(index, channels);
    const bool merges = MergesWhereUsed(schedule_, kernel, target_);
    const int64_t bytes = BytesOfPartials(schedule_, kernel);
    int last = index;
    if (merges) {
      schedule_.kernels[index].leaves_states = true;
      last = std::max(index, LastUser(tail.results[0]));
    }
    buffers_.push_back({index, -1, {index, last, bytes}});
    if (!kernel.group.finish.empty()) AddProgress(index);
  }

  std::optional<Correlation> ChosenCorrelation(const Kernel& kernel) const {
    if (correlating_ == Correlating::kNever) return std::nullopt;
    std::optional<Correlation> correlation =
        CorrelationFor(schedule_, kernel, plan_.plan.grade, target_);
    if (correlating_ == Correlating::kAlways) return correlation;
    const ConvGeometry& g = *kernel.conv;
    const double direct =
        ConvCycles(g, TileCycles(g, kernel.demands), target_.sm_count);
    if (correlation && correlation->cycles >= direct) correlation.reset();
    return correlation;
  }

  // What blocks that hold images publish, a word for each state and one for
  // each block, apart from everything else: the next launch goes on from it.
  void AddRecords(int index, int64_t channels) {
    Kernel& kernel = schedule_.kernels[index];
    kernel.leaves_states = true;
    const ConvGeometry& g = *kernel.conv;
    const int64_t states = kernel.group.domain[0] * kernel.group.domain[1] /
                           channels * g.Splits(channels);
    const int last = static_cast<int>(schedule_.kernels.size()) - 1;
    buffers_.push_back(
        {index, -1, {0, last, (states + g.blocks()) * kTeamRecordBytes}});
    // All of a multiprocessor, of which the tile leaves little.
    Require(g.requirements(MaxSharedBytes(target_)));
  }

  void AddProgress(int index) {
    Kernel& kernel = schedule_.kernels[index];
    kernel.lag = FinishLag(*kernel.conv, target_);
    const int64_t bytes = (1 + kernel.group.domain[0]) * kCountBytes;
    buffers_.push_back({index, -1, {0, index, bytes}, true});
  }

  // Leaves in memory what later kernels or the caller need, or the kernel
  // itself to finish, if no kernel before has.
  void AddStores(int index) {
    if (!schedule_.kernels[index].computes()) return;
    const KernelGroup group = schedule_.kernels[index].group;
    const bool keeps_rows = schedule_.kernels[index].rows.has_value();
    for (const int node : group.Nodes()) {
      const bool is_inner =
          !keeps_rows && std::find(group.prologue.begin(), group.prologue.end(),
                                   node) != group.prologue.end();
      const bool is_left =
          schedule_.kernels[index].leaves_states && node == group.tail;
      if (!is_inner && !is_left && stored_.insert(node).second) {
        AddStoresOf(index, NodeAt(node));
      }
    }
  }

  void AddStoresOf(int index, const Node& node) {
    Kernel& kernel = schedule_.kernels[index];
    for (const int value : node.results) {
      for (const Store& store : OutputsOf(value)) {
        kernel.stores.push_back(store);
        if (store.place.dtype == DescOf(value).dtype &&
            !schedule_.homes[value]) {
          schedule_.homes[value] = store.place;
        }
      }
      const bool is_read_again = IsReadAgain(kernel, value);
      const int last_user = std::max(LastUser(value), index);
      if (last_user == index && !is_read_again) continue;
      if (schedule_.homes[value]) continue;
      if (schedule_.lowered.values[value].laid) {
        AddLaidResults(index, value, last_user);
        continue;
      }
      if (const auto place = OutputLentTo(schedule_, value, last_user)) {
        schedule_.homes[value] = place;
        kernel.stores.push_back({value, *place});
        continue;
      }
      buffers_.push_back(
          {index, value, {index, last_user, SizeBytes(DescOf(value))}});
    }
  }

  // The kernel that lays the input down leaves factors and scales.
  void AddLaidResults(int index, int value, int last_user) {
    const Kernel& kernel = schedule_.kernels[index];
    const auto layer = std::find_if(
        schedule_.kernels.begin(), schedule_.kernels.end(),
        [&](const Kernel& other) {
          return other.lays() && other.group.anchor == kernel.group.anchor;
        });
    const auto first = static_cast<int>(layer - schedule_.kernels.begin());
    const int64_t bytes = kernel.conv->laid_results().ReservedBytes();
    buffers_.push_back(
        {index, value, {std::min(first, index), last_user, bytes}});
  }

  // The last kernel that reads a value from memory, or makes it; -1 if none
  // does.
  int LastUser(int value) const {
    for (int i = static_cast<int>(schedule_.kernels.size()) - 1; i >= 0; --i) {
      if (Reads(schedule_.kernels[i], value)) return i;
    }
    return -1;
  }

  bool Reads(const Kernel& kernel, int value) const {
    const int producer = schedule_.lowered.values[value].producer;
    const std::vector<int> nodes = kernel.group.Nodes();
    if (std::find(nodes.begin(), nodes.end(), producer) != nodes.end()) {
      return false;
    }
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](int node) { return NodeAt(node).Reads(value); });
  }

  // Whether `kernel` makes `value` and reads it from memory to finish.
  bool IsReadAgain(const Kernel& kernel, int value) const {
    if (kernel.conv && kernel.conv->holds_images()) return false;
    const std::vector<int>& finish = kernel.group.finish;
    const auto has = [&](int node) {
      return std::find(finish.begin(), finish.end(), node) != finish.end();
    };
    return !has(schedule_.lowered.values[value].producer) &&
           std::any_of(finish.begin(), finish.end(),
                       [&](int node) { return NodeAt(node).Reads(value); });
  }

  // Whether launches go on from what the one before has left in `partials`.
  static bool GoesOn(const Kernel& kernel) {
    return (kernel.rows && kernel.rows->keeper == RowKeeper::kTeam) ||
           (kernel.conv && kernel.conv->holds_images());
  }

  void PlaceWorkspace() {
    std::vector<Lifetime> lifetimes;
    for (const Buffer& buffer : buffers_) lifetimes.push_back(buffer.lifetime);
    const WorkspaceLayout layout = LayOutWorkspace(lifetimes);
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const Place place{-1, layout.offsets[i], DataType::kF32};
      Kernel& kernel = schedule_.kernels[buffers_[i].kernel];
      if (kernel.packs()) {
        kernel.packed = place;
      } else if (kernel.lays()) {
        kernel.laid = place;
      } else if (buffers_[i].counts) {
        kernel.progress = place;
        AddZero(buffers_[i], place, ZeroWhen::kEachLaunch);
      } else if (buffers_[i].value < 0) {
        kernel.partials = place;
        if (GoesOn(kernel)) {
          AddZero(buffers_[i], place, ZeroWhen::kOnce);
        }
      } else {
        const int value = buffers_[i].value;
        const DataType dtype = schedule_.lowered.values[value].laid
                                   ? DataType::kF16
                                   : DescOf(value).dtype;
        const Place home{-1, layout.offsets[i], dtype};
        schedule_.homes[value] = home;
        kernel.stores.push_back({value, home});
      }
    }
    schedule_.workspace_bytes = layout.size_bytes;
    for (Kernel& kernel : schedule_.kernels) FindWhatOthersLeave(&kernel);
  }

  void FindWhatOthersLeave(Kernel* kernel) const {
    if (kernel->ReadsPacked()) kernel->packed = PackerOf(*kernel)->packed;
    if (kernel->TakesLaidLines()) {
      kernel->laid = kernel->conv->problem.input_is_laid
                         ? schedule_.homes[InputOf(*kernel)]
                         : LayerOf(*kernel)->laid;
    }
    const Kernel* const bounder = BounderOf(*kernel);
    if (bounder == nullptr) return;
    const KernelGroup& group = bounder->group;
    const int last =
        group.epilogue.empty() ? group.anchor : group.epilogue.back();
    kernel->laid_results = schedule_.homes[NodeAt(last).results[0]];
    kernel->bounds = bounder->bounds;
  }

  void AddZero(const Buffer& buffer, const Place& place, ZeroWhen when) {
    schedule_.zero.push_back({Area::kWorkspace, place.offset_bytes,
                              buffer.lifetime.size_bytes, when});
  }

  const CanonicalPlan& plan_;
  const int num_inputs_;
  const Target& target_;
  const Room room_;
  Correlating correlating_ = Correlating::kNever;
  Schedule schedule_;
  std::vector<Buffer> buffers_;
  std::set<int> stored_;  // nodes whose results have been taken care of
};

// Whether each pooling that was moved is part of a convolution: no other kernel
// does it.
bool PoolsEarlyInPlace(const Schedule& schedule) {
  return std::none_of(
      schedule.kernels.begin(), schedule.kernels.end(),
      [&](const Kernel& kernel) {
        return kernel.group.anchor >= 0 &&
               IsEarlyPooling(schedule.lowered.nodes[kernel.group.anchor]);
      });
}

int SpareRegisters(Room room) {
  if (room == Room::kTight) return 0;
  return room == Room::kAmple ? 32 : 64;
}

// Whether the models' choice has correlations, so that convolutions as they are
// fastest are the second candidates.
bool HasCorrelationsFirst(const Scheduling& start) {
  if (!start.MayCorrelate()) return false;
  return Scheduling(start)
             .Correlate(Correlating::kWhereFaster)
             .Fast(start.Fuse(0, 0), RowUse::kFastest, 0)
             .CountCorrelations() > 0;
}

// The fastest, and one that asks nothing of the device; the search for tiles of
// convolutions takes most of the time, and is the same for both.
std::vector<Schedule> MakeFast(const Scheduling& start, int spare_registers,
                               const Tuning& tuning) {
  int rank = tuning.conv;
  if (rank > 0 && HasCorrelationsFirst(start)) --rank;
  const ConvFusion fusion = start.Fuse(spare_registers, rank);
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

// With pooling in front of norms, if a convolution's kernel does that.
std::vector<Schedule> MakeFast(const CanonicalPlan& plan, const Target& target,
                               const LoweredPlan& lowered, Room room,
                               const Tuning& tuning) {
  const int spare = SpareRegisters(room);
  std::vector<Schedule> commuted = MakeFast(
      Scheduling(plan, target, CommutePooling(lowered), room), spare, tuning);
  if (PoolsEarlyInPlace(commuted.front())) return commuted;
  return MakeFast(Scheduling(plan, target, lowered, room), spare, tuning);
}

// `schedules`, of `lowered`, or if the models say that it is faster others in
// which convolutions leave lines for the next: value by value.
std::vector<Schedule> WithLaidResults(const CanonicalPlan& plan,
                                      const Target& target,
                                      const LoweredPlan& lowered, Room room,
                                      const Tuning& tuning,
                                      std::vector<Schedule> schedules) {
  LaidValues laid;
  for (const auto& value : ResultsToLay(plan.plan, schedules.front())) {
    LaidValues values = laid;
    values.insert(value);
    std::vector<Schedule> with =
        MakeFast(plan, target, LayResults(lowered, values), room, tuning);
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
                                    const Tuning& tuning) {
  if (room == Room::kPlain) {
    return {Scheduling(plan, target, Lower(plan), room).Plain()};
  }
  LoweredPlan lowered = MeetReductions(Lower(plan));
  const bool is_hopper = target.arch == "sm_90a";
  if (ComputeCapability(target) >= 80) {
    lowered = UnfoldPatches(GatherPixels(std::move(lowered)), is_hopper);
  }
  if (is_hopper) lowered = FoldSignals(std::move(lowered));
  if (!is_hopper) return MakeFast(plan, target, lowered, room, tuning);
  std::set<int> apart;  // results of convolutions that were not suited
  for (size_t before = 0;; before = apart.size()) {
    const LoweredPlan in_rows =
        ReshapeImages(JoinImages(lowered, tuning.images > 0, apart), apart);
    std::vector<Schedule> schedules =
        MakeFast(plan, target, in_rows, room, tuning);
    for (const Schedule& schedule : schedules) {
      apart.merge(
          UnsuitedImages(schedule, {plan.plan.grade, target, 0, nullptr}));
    }
    if (apart.size() > before) continue;
    return WithLaidResults(plan, target, in_rows, room, tuning,
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
