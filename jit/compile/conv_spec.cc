// Longer than 400 lines because one class writes a kernel's text, tail by tail.
#include "jit/compile/conv_spec.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "fmt/format.h"
#include "jit/compile/channel_text.h"
#include "jit/compile/conv_constants.h"
#include "jit/compile/conv_demands.h"
#include "jit/compile/conv_finish.h"
#include "jit/compile/conv_fusion.h"
#include "jit/compile/conv_store_text.h"
#include "jit/compile/finish_text.h"
#include "jit/compile/folded_factors.h"
#include "jit/compile/lay_spec.h"
#include "jit/compile/rounding.h"
#include "jit/compile/spec_text.h"
#include "jit/compile/warpgroup_text.h"

namespace kiln {
namespace {

constexpr int kMergeThreads = 256;
constexpr int64_t kFewestAhead = 8;  // chunks of a block
constexpr int64_t kMergedByBlock = kMergeThreads / 32;

class ConvSpecWriter {
 public:
  ConvSpecWriter(const Schedule& schedule, const Kernel& kernel)
      : schedule_(schedule),
        kernel_(kernel),
        geometry_(*kernel.conv),
        tensors_(schedule, kernel),
        inner_(schedule, kernel.group.domain, &tensors_),
        outer_(schedule, TailDomain(), &tensors_),
        folded_(FoldFactors(schedule.lowered, kernel)) {}

  KernelSpec Run() && {
    const bool has_groups = geometry_.has_groups();
    spec_.source_file = has_groups ? "conv_wgmma.cu" : "conv_mma.cu";
    spec_.constants = TileConstants(geometry_);
    Append(has_groups ? StageConstants(geometry_) : PatchConstants(geometry_));
    if (has_groups) AppendProducts();
    Convolution();
    if (kernel_.group.tail < 0) {
      Finish("kStore", "kiln_conv", StagedWords());
      if (stores_read_) {
        AppendRead(LastInner());
        spec_.has_element = false;
      } else {
        spec_.element_argument = SumArguments();
        spec_.element_body = inner_.lines();
      }
    } else if (!kernel_.group.shares.empty()) {
      SoftmaxTail(NodeAt(kernel_.group.tail));
    } else {
      Tail(NodeAt(kernel_.group.tail));
    }
    const std::vector<std::string> channel = ChannelText(inner_);
    spec_.members.insert(spec_.members.begin(), channel.begin(), channel.end());
    if (Finishes() && !geometry_.holds_images()) AppendFinish();
    spec_.formula = Formula();
    spec_.tensors = tensors_.list();
    spec_.index =
        NeedsWideIndex(geometry_, kernel_.group.domain) ? "long long" : "int";
    return std::move(spec_);
  }

 private:
  const Node& NodeAt(int index) const { return schedule_.lowered.nodes[index]; }
  const std::string& NameOf(int value) const {
    return schedule_.lowered.values[value].name;
  }
  const Dims& DimsOf(int value) const {
    return schedule_.lowered.values[value].desc.dims;
  }
  Dims TailDomain() const {
    const int tail = kernel_.group.tail;
    return tail < 0 ? kernel_.group.domain : DimsOf(NodeAt(tail).results[0]);
  }

  void Append(const std::vector<std::string>& lines) {
    spec_.constants.insert(spec_.constants.end(), lines.begin(), lines.end());
  }

  void AppendMembers(const std::vector<std::string>& lines) {
    spec_.members.insert(spec_.members.end(), lines.begin(), lines.end());
  }

  std::vector<std::string> Formula() const {
    std::vector<std::string> lines;
    for (const int node : kernel_.group.Nodes()) {
      lines.push_back(NodeAt(node).text);
    }
    return lines;
  }

  bool HasBias() const {
    return ValueOf(NodeAt(kernel_.group.anchor).operands[2]) >= 0;
  }
  static std::string SumArguments() {
    return "float sum, float scale, bool inside, const Channel& channel";
  }

  // From the sum to the last pointwise value before the tail.
  void Convolution() {
    const Node& node = NodeAt(kernel_.group.anchor);
    if (geometry_.lays_lines) {
      AddLaidLines(kernel_, false, &tensors_);
    } else {
      tensors_.Read(ValueOf(node.operands[0]), "input");
    }
    tensors_.Add({"packed", "unsigned", false, *kernel_.packed});
    const int result = node.results[0];
    inner_.SeparateChannels();
    if (geometry_.reads_beside) inner_.SeparateElements();
    inner_.Fold(folded_);
    const float factor = folded_.Of(result);
    inner_.Assign(inner_.NameOf(result),
                  HasBias()
                      ? fmt::format("fmaf(sum, scale, {})",
                                    inner_.LoadLocal(ValueOf(node.operands[2]),
                                                     "bias", "at.c", factor))
                      : "sum * scale");
    inner_.Define(result);
    Append({fmt::format("static constexpr float kSumFactor = {};",
                        FloatLiteral(factor))});
    for (const int next : kernel_.group.epilogue) {
      inner_.Compute(NodeAt(next));
    }
    stores_read_ = StoresRead();
    if (geometry_.reads_beside) AppendBeside();
    // By Spec::StoreRead.
    const bool stages_read = kernel_.demands.has_statistics && StagesResults();
    if (stores_read_ || stages_read) StoreRead();
    if (stores_read_) return;
    for (const Store& store : kernel_.stores) {
      if (!IsInner(store.value)) continue;
      if (stages_read && store.value == LastInner()) continue;
      inner_.StoreTo(store, "inside");
    }
  }

  // Whether Spec::Read only computes, and Spec::StoreRead stores what it
  // returns or, in front of statistics that nobody else needs values of,
  // nothing.
  bool StoresRead() const {
    if (TailStaysInRegisters()) return true;
    if (kernel_.group.tail >= 0 || !geometry_.channel_rows) return false;
    return !ReadsElements() && StoresOnlyLast();
  }
  bool StoresOnlyLast() const {
    return std::all_of(
        kernel_.stores.begin(), kernel_.stores.end(),
        [&](const Store& store) { return store.value == LastInner(); });
  }
  // Whether results go through shared memory; of a kernel with statistics, what
  // these are taken of.
  bool StagesResults() const {
    if (!geometry_.StagesResults(kernel_.demands)) return false;
    return !kernel_.demands.has_statistics ||
           std::any_of(
               kernel_.stores.begin(), kernel_.stores.end(),
               [&](const Store& store) { return store.value == LastInner(); });
  }
  int64_t StagedWords() const {
    return StagesResults() ? geometry_.StagedWords(kernel_.demands) : 0;
  }
  // The last value that is computed of an element before the tail, if any.
  int LastInner() const {
    const KernelGroup& group = kernel_.group;
    if (group.tail >= 0) return ValueOf(NodeAt(group.tail).operands[0]);
    return NodeAt(group.epilogue.empty() ? group.anchor : group.epilogue.back())
        .results[0];
  }

  // A value or, from planes, a float2 of two neighbours.
  void StoreRead() {
    const int value = LastInner();
    ElementCode code(schedule_, kernel_.group.domain, &tensors_);
    code.Define(value);
    std::vector<std::string> paired;
    if (kernel_.laid_results) AddResultScales(kernel_, false, &tensors_);
    for (const Store& store : kernel_.stores) {
      if (store.value == value) paired.push_back(tensors_.Write(store));
    }
    if (paired.empty()) return;
    if (geometry_.rounds_sums) return RoundSums(paired.front());
    if (geometry_.stores_sums) return AppendMembers(StoreSumsFunction(paired));
    for (const Store& store : kernel_.stores) {
      if (store.value == value) code.StoreTo(store, "inside");
    }
    spec_.members.push_back("template <typename Value>");
    AppendMembers(
        StoreFunction("StoreRead", "Value " + NameOf(value), code.lines()));
    if (!geometry_.channel_rows) return;
    for (const auto& read : inner_.read_beside()) paired.push_back(read.tensor);
    AppendMembers(PairsAlignedFunction(paired));
  }

  void AppendBeside() {
    AppendMembers(BesideText(inner_.read_beside()));
    if (geometry_.rounds_sums) return;
    AppendMembers(LoadBesideText(inner_.read_beside()));
    Append({IntText("kChannelsAhead",
                    ConvGeometry::ChannelsAhead(kernel_.demands))});
  }

  // What conv_rounded.cuh stores to `result`, and reads.
  void RoundSums(const std::string& result) {
    AppendMembers(TensorFunction("ResultOf", result));
    for (const auto& read : inner_.read_beside()) {
      AppendMembers(TensorFunction("BesideOf", read.tensor));
    }
    const DataType type = kernel_.demands.stored_type;
    Append({fmt::format("using Stored = {};", StorageTypeName(type))});
  }

  bool IsInner(int value) const {
    const int producer = schedule_.lowered.values[value].producer;
    const std::vector<int>& epilogue = kernel_.group.epilogue;
    return producer == kernel_.group.anchor ||
           std::find(epilogue.begin(), epilogue.end(), producer) !=
               epilogue.end();
  }

  void Tail(const Node& node) {
    Append(ShapeText("TailOutput", TailDomain()));
    if (node.kind == NodeKind::kPool2d) {
      PoolTail(node);
    } else if (node.op == OpKind::kGroupNorm) {
      MomentsTail(node);
    } else if (ChannelsOfState(node, kernel_.group.domain) > 0) {
      ImagesTail(node);
    } else {
      ChannelsTail(node);
    }
    for (const int next : kernel_.group.tail_epilogue) {
      outer_.Compute(NodeAt(next));
    }
    for (const Store& store : kernel_.stores) {
      if (!IsInner(store.value) && !IsPooledEarly(store.value) &&
          !IsOfFinish(schedule_, kernel_, store)) {
        outer_.StoreTo(store);
      }
    }
    AppendRead(ValueOf(node.operands[0]));
    spec_.element_body = outer_.lines();
  }

  // Spec::Read, which computes `value`.
  void AppendRead(int value) {
    spec_.reads_elements = true;
    spec_.read_argument =
        SumArguments() +
        (geometry_.reads_beside ? ", const Beside& beside" : "");
    spec_.read_result = FoldsFactors(schedule_.lowered, kernel_)
                            ? inner_.LocalTimes(value, kLog2E)
                            : inner_.Local(value);
    spec_.read_body = inner_.lines();
  }

  void DefineResults(const Node& node, int64_t steps) {
    const std::vector<std::string> results = ReducerResults(node, steps);
    const std::string constant =
        folded_.constant == 0.0f ? "" : " + " + FloatLiteral(folded_.constant);
    for (size_t i = 0; i < results.size(); ++i) {
      outer_.Assign(NameOf(node.results[i]), results[i] + constant);
      outer_.Define(node.results[i]);
    }
    spec_.element_argument = "const Reducer& state";
  }

  void AppendProducts() {
    Append({IntsText("kProducerGroups", geometry_.producers, "kProducers",
                     geometry_.chunk_producers()),
            IntText("kOctetsAtOnce", geometry_.octets_at_once()),
            IntsText("kProducerRegisters", geometry_.producer_registers(),
                     "kConsumerRegisters", geometry_.consumer_registers())});
    Append(WarpgroupProducts(geometry_));
  }

  // What of windows there is to find beside statistics, and where it goes.
  void EarlyPooling(const Node& node) {
    Append(ShapeText("Windows", DimsOf(node.results[0])));
    Append(PoolConstants(geometry_, node));
    if (node.op == OpKind::kMaxPool2d) KeepSign(node);
    if (geometry_.holds_images()) return;
    ElementCode code(schedule_, DimsOf(node.results[0]), &tensors_);
    code.Define(node.results[0]);
    for (const Store& store : kernel_.stores) {
      if (IsPooledEarly(store.value)) code.StoreTo(store, "inside");
    }
    AppendMembers(StoreFunction(
        "StorePooled", "float " + NameOf(node.results[0]), code.lines()));
  }

  // Of what windows' extremes are asked for, in the channel.
  void KeepSign(const Node& node) {
    std::string product;
    for (size_t i = 1; i < node.operands.size(); ++i) {
      const float* constant = std::get_if<float>(&node.operands[i]);
      product += i == 1 ? "" : " * ";
      product += constant != nullptr
                     ? FloatLiteral(*constant)
                     : inner_.ChannelLocal(ValueOf(node.operands[i]));
    }
    inner_.KeepInChannel("sign", fmt::format("copysignf(1.0f, {})", product));
  }

  bool IsPooledEarly(int value) const {
    const int pooling = kernel_.group.early_pooling;
    return pooling >= 0 && value == NodeAt(pooling).results[0];
  }

  // Where channels are rows: whether ops on elements are done as a window reads
  // its sums, again for each window that has them. That saves a pass over the
  // planes, and costs less while the ops are few, some three simple ones.
  bool PoolsSums() const {
    constexpr int64_t kFewInstructions = 9;
    const bool is_cheap = kernel_.demands.instructions <= kFewInstructions ||
                          !geometry_.windows.lay_out_tiles();
    return is_cheap && !ReadsElements() && !StoresInner();
  }

  void PoolTail(const Node& node) {
    Append(PoolConstants(geometry_, node));
    Append({BoolText("kPoolsSums", PoolsSums())});
    spec_.element_argument = "float " + NameOf(node.results[0]);
    outer_.Define(node.results[0]);
    Finish("kPool", "kiln_conv_pool", geometry_.WindowWords());
  }

  void ChannelsTail(const Node& node) {
    Append({fmt::format("using Reducer = kiln::{};", ReducerName(node.op))});
    Append({NeutralFunction(node.op)});
    DefineResults(node, kernel_.group.domain[1]);
    const int64_t pixels = geometry_.tile_h * geometry_.tile_w;
    Finish("kChannels", "kiln_conv_reduce",
           2 * (Parts().second - 1) * pixels * ReducerStateBytes(node) / 4);
  }

  // The softmax that the statistics `node` are for, and what follows it.
  void SoftmaxTail(const Node& node) {
    Append({NeutralFunction(OpKind::kAmax)});
    ElementCode code(schedule_, kernel_.group.domain, &tensors_);
    for (const int index : kernel_.group.shares) {
      const Node& share = NodeAt(index);
      if (share.op != OpKind::kSoftmax) {
        code.Compute(share);
        continue;
      }
      code.Define(share.results[0]);
      spec_.element_argument =
          fmt::format("float {}, bool inside", NameOf(share.results[0]));
    }
    Finish("kSoftmax", "kiln_conv_softmax",
           geometry_.softmax_words() + StagedWords());
    AppendRead(ValueOf(node.operands[0]));
    for (const Store& store : kernel_.stores) {
      if (!IsInner(store.value)) code.StoreTo(store, "inside");
    }
    spec_.element_body = code.lines();
  }

  // What blocks leave (conv_partials.cuh); returns how many states an image
  // has.
  int64_t PartialStates(const Node& node) {
    const int64_t channels = ChannelsOfState(node, kernel_.group.domain);
    const int64_t states = kernel_.group.domain[1] / channels;
    Append({fmt::format("using Reducer = kiln::{};", ReducerName(node.op)),
            fmt::format("static constexpr int kStatesOfImage = {}, "
                        "kChannelsOfState = {};",
                        states, channels),
            fmt::format("static constexpr int kSplits = {};",
                        geometry_.Splits(channels)),
            BoolText("kStatesAreWhole", StatesAreWhole(channels))});
    return states;
  }

  // Whether a block makes of its states what is to be made of them, as it has
  // all of each.
  bool StatesAreWhole(int64_t channels) const {
    return geometry_.Splits(channels) == 1 && !Finishes() &&
           !kernel_.leaves_states;
  }

  // Behind the convolution's kernel, for so many states of each image.
  void MergePartials(int64_t states) {
    if (StatesAreWhole(kernel_.group.domain[1] / states)) return;
    const int64_t all = kernel_.group.domain[0] * states;
    spec_.entries.push_back(
        {"kiln_merge_partials",
         "kiln::MergePartials",
         kMergeThreads,
         {static_cast<uint32_t>(CeilDiv(all, kMergedByBlock)), 1, 1}});
  }

  void ImagesTail(const Node& node) {
    const int64_t states = PartialStates(node);
    Append({NeutralFunction(node.op)});
    DefineResults(node, kernel_.group.domain[2] * kernel_.group.domain[3]);
    Finish("kImages", "kiln_conv_reduce_images",
           Parts().first * geometry_.block_channels());
    tensors_.Add({"partials", "Reducer", true, *kernel_.partials});
    MergePartials(states);
  }

  void MomentsTail(const Node& node) {
    const int64_t states = PartialStates(node);
    DefineResults(node, 0);
    Append({fmt::format("static constexpr bool kPoolsEarly = {};",
                        kernel_.group.early_pooling >= 0)});
    if (kernel_.group.early_pooling >= 0) {
      EarlyPooling(NodeAt(kernel_.group.early_pooling));
    }
    const int64_t channels = kernel_.group.domain[1] / states;
    if (geometry_.holds_images()) return HeldTail(channels);
    const int64_t slots =
        geometry_.block_channels() / (channels % 2 == 0 ? 2 : 1);
    const int64_t scratch =
        geometry_.channel_rows ? 0 : Parts().first * slots * 3 + StagedWords();
    Finish("kMoments", "kiln_conv_statistics",
           kernel_.group.early_pooling < 0
               ? scratch
               : std::max(scratch, geometry_.WindowWords()));
    tensors_.Add({"partials", "Reducer", true, *kernel_.partials});
    spec_.has_element = !kernel_.leaves_states;
    if (!Finishes() && !kernel_.leaves_states) MergePartials(states);
  }

  // Of blocks that hold images, whose states are of so many channels.
  void HeldTail(int64_t channels) {
    const HeldFinishText finish =
        WriteHeldFinish(schedule_, kernel_, &tensors_);
    AppendMembers(finish.lines);
    held_words_ = (geometry_.holds_windows()
                       ? geometry_.HeldWindowBytes(finish.channel_bytes)
                       : geometry_.HeldBytes(finish.channel_bytes, channels)) /
                  4;
    Finish("kMoments", "kiln_conv_held", 0);
    tensors_.Add({"records", "unsigned long long", true, *kernel_.partials});
    spec_.has_element = false;
  }

  bool Finishes() const { return !kernel_.group.finish.empty(); }

  void AppendFinish() {
    tensors_.Add({"progress", "unsigned", true, *kernel_.progress});
    AppendMembers(FinishText(schedule_, kernel_, &tensors_));
  }

  // Warps that share the pixels of a tile, and its channels, where pixels are
  // the rows of the product.
  std::pair<int64_t, int64_t> Parts() const {
    return {geometry_.row_warps(),
            geometry_.block_channels() / (8 * geometry_.tiles_n)};
  }

  // Whether statistics, or reductions, are taken from registers:
  // what is before them reads no whole tensor, and no values but those of
  // statistics without windows are stored.
  bool TailStaysInRegisters() const {
    const KernelGroup& group = kernel_.group;
    if (geometry_.stores_sums) return true;
    if (!geometry_.channel_rows || group.tail < 0) return false;
    if (geometry_.reduces_runs(kernel_.demands)) return true;
    const Node& tail = NodeAt(group.tail);
    if (ChannelsOfState(tail, group.domain) == 0 || ReadsElements()) {
      return false;
    }
    for (const Store& store : kernel_.stores) {
      if (!IsInner(store.value)) continue;
      const bool is_of_statistics = tail.op == OpKind::kGroupNorm &&
                                    store.value == ValueOf(tail.operands[0]);
      if (!is_of_statistics || group.early_pooling >= 0) return false;
    }
    if (group.early_pooling < 0) return true;
    const auto& pool =
        std::get<PoolAttributes>(NodeAt(group.early_pooling).attributes);
    const int64_t width = pool.kernel_size[1];
    return width == 2 || width == 4 || width == 8;
  }
  // Whether the ops behind the convolution do.
  bool ReadsElements() const {
    const std::vector<std::string>& lines = inner_.lines();
    return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find("kiln::Load") != std::string::npos;
    });
  }
  bool StoresInner() const {
    return std::any_of(
        kernel_.stores.begin(), kernel_.stores.end(),
        [&](const Store& store) { return IsInner(store.value); });
  }

  // Whether producers send for the next chunk before they hand one over. Not
  // where results are stored, behind which the loads would queue, nor where
  // producers take turns, copy ahead anyway, or have little to fetch ahead.
  bool LoadsAhead(const std::string& tail) const {
    if (geometry_.batches_ahead > 0) return false;
    const bool stores = tail == "kStore" || tail == "kPool" ||
                        tail == "kSoftmax" || StoresInner();
    if (geometry_.holds_images() && !geometry_.holds_windows()) {
      return geometry_.chunk_producers() == 1 &&
             geometry_.chunks() * geometry_.rounds() >= kFewestAhead;
    }
    return !stores && geometry_.shares_chunks() &&
           geometry_.chunks() * geometry_.tiles_per_block >= kFewestAhead;
  }

  // The columns of fragments whose values a warpgroup computes before the next
  // may multiply; 0 if it may at once. Groups are as far apart as they can be
  // if each holds its turn for a tile's time divided by their number. By what
  // was measured of four groups (docs/kernel-notes) that is when half of the
  // values are there, and a quarter where the input has two parts, so that more
  // of the time has gone into products. Two groups won little, where a tail is
  // short they lost. Of channels as rows an eighth was best, and nothing where
  // the input has two parts.
  int64_t TurnHeldFor(const std::string& tail) const {
    constexpr int kFewest = 3;
    constexpr int64_t kShareOfRuns = 8;
    const bool computes_values = tail == "kChannels" || tail == "kSoftmax";
    if (!computes_values || !geometry_.has_groups()) return 0;
    if (geometry_.groups() < kFewest || geometry_.all_chunks() > 1) return 0;
    if (geometry_.sums_chunks()) return 0;
    if (geometry_.channel_rows) {
      return geometry_.input_parts() > 1
                 ? 0
                 : std::max(int64_t{1}, geometry_.tiles_n / kShareOfRuns);
    }
    const int64_t shares = geometry_.input_parts() > 1 ? 1 : 2;
    return std::max(int64_t{1},
                    geometry_.tiles_n * shares / geometry_.groups());
  }

  // Whether windows in registers go to memory by way of shared memory
  // (RunTail::Take).
  bool KeepsWindows() const {
    return kernel_.group.early_pooling >= 0 && geometry_.windows.size[1] == 2;
  }

  // What channels have in common is computed once in a block, not for each of
  // the images that it holds.
  bool SharesChannels() const {
    const KernelGroup& group = kernel_.group;
    std::vector<int> nodes = group.epilogue;
    if (group.early_pooling >= 0) nodes.push_back(group.early_pooling);
    const bool has_one_image =
        !geometry_.holds_images() && geometry_.image_step == 0;
    return has_one_image || !VariesByImage(schedule_.lowered, nodes);
  }

  // The launch of the convolution, whose tail needs `scratch_words`.
  void Finish(const std::string& tail, const std::string& symbol,
              int64_t scratch_words) {
    const bool in_registers = TailStaysInRegisters();
    bool has_planes = false;
    int64_t states = 0;
    if (geometry_.channel_rows) {
      const bool has_states = tail == "kMoments" || tail == "kImages";
      if (has_states) states = (geometry_.state_bytes() + 15) / 16 * 4;
      has_planes = !in_registers || (StoresInner() && !geometry_.stores_sums);
      scratch_words = states + (has_planes ? geometry_.plane_bytes() / 4 : 0);
      if (in_registers && KeepsWindows()) {
        scratch_words += geometry_.kept_window_words();
      }
      if (geometry_.reduces_runs(kernel_.demands)) {
        scratch_words = geometry_.channel_run_bytes() / 4;
      }
      if (geometry_.holds_images()) scratch_words = states + held_words_;
    }
    Append({BoolText("kHasPlanes", has_planes),
            BoolText("kTailInRegisters", in_registers),
            BoolText("kStagesResults", StagesResults()),
            BoolText("kStoresRead", stores_read_),
            BoolText("kReadsBeside", geometry_.reads_beside),
            IntText("kTurnHeldFor", TurnHeldFor(tail)),
            BoolText("kCountsOnce", kernel_.demands.has_statistics &&
                                        geometry_.windows.lay_out_tiles()),
            BoolText(
                "kComputesFirst",
                !kernel_.group.epilogue.empty() || StoresInner() ||
                    (geometry_.holds_images() && !geometry_.holds_windows()))});
    if (geometry_.has_groups()) {
      const bool has_warps = Finishes() && !geometry_.holds_images();
      Append({IntsText("kStateWords", states, "kFinishWarps",
                       has_warps ? kFinishWarps : 0),
              fmt::format("static constexpr unsigned kLag = {};", kernel_.lag),
              BoolText("kLoadsAhead", LoadsAhead(tail)),
              BoolText("kFetchesEarly", kernel_.fetches_early)});
    }
    const int64_t channel_units =
        SharesChannels() ? SharedChannelUnits(inner_, geometry_) : 0;
    const int64_t bytes =
        geometry_.shared_bytes() + channel_units * 16 + scratch_words * 4;
    Append({BoolText("kSharesChannels", channel_units > 0),
            IntText("kChannelUnits", channel_units),
            fmt::format("static constexpr kiln::Tail kTail = kiln::Tail::{};",
                        tail),
            fmt::format("static constexpr int kScratchWords = {}, "
                        "kSharedBytes = {};",
                        scratch_words, bytes)});
    EntrySpec entry{
        symbol, geometry_.has_groups() ? "kiln::ConvWgmma" : "kiln::ConvMma",
        static_cast<int>(geometry_.threads())};
    entry.grid = {static_cast<uint32_t>(geometry_.blocks() + kernel_.lag), 1,
                  1};
    entry.cluster[0] = static_cast<uint32_t>(geometry_.sum_blocks);
    entry.dynamic_shared_bytes = bytes;
    entry.min_blocks = geometry_.resident_blocks;
    entry.awaits_itself = geometry_.has_groups();
    entry.cooperative = geometry_.holds_images() && !geometry_.in_turns;
    if (geometry_.in_turns) {
      entry.earlier_grids.push_back({entry.grid[0], kPublishingTurn, 1});
    }
    spec_.entries.push_back(std::move(entry));
  }

  const Schedule& schedule_;
  const Kernel& kernel_;
  const ConvGeometry& geometry_;
  KernelTensors tensors_;
  ElementCode inner_;  // on the convolution's elements
  ElementCode outer_;  // on those of the tail
  const FoldedFactors folded_;
  bool stores_read_ = false;  // StoresRead, once all inner ops are written
  int64_t held_words_ = 0;    // of shared memory, where blocks hold images
  KernelSpec spec_;
};

}  // namespace

KernelSpec MakeConvSpec(const Schedule& schedule, const Kernel& kernel) {
  return ConvSpecWriter(schedule, kernel).Run();
}

}  // namespace kiln
