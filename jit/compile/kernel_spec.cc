// Longer than 400 lines because one class describes a kernel of each template.
#include "jit/compile/kernel_spec.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "fmt/format.h"
#include "jit/compile/bound_spec.h"
#include "jit/compile/conv_spec.h"
#include "jit/compile/correlation_spec.h"
#include "jit/compile/direct_spec.h"
#include "jit/compile/held_text.h"
#include "jit/compile/lay_spec.h"
#include "jit/compile/mosaic_blocks.h"
#include "jit/compile/pack_spec.h"
#include "jit/compile/pool_prologue.h"
#include "jit/compile/rounding.h"
#include "jit/compile/row_chain_spec.h"
#include "jit/compile/row_spec.h"
#include "jit/compile/spec_text.h"
#include "jit/compile/split_rows.h"
#include "jit/compile/window_geometry.h"

namespace kiln {
namespace {

constexpr int kThreads = 256;
// Of a thread that merges what blocks have left of an output: few enough to be
// in flight at once.
constexpr int kMaxStates = 4;
// Elements of join.cu's threads: memory is busy with fewer blocks than a small
// tensor would have with one each.
constexpr int kJoinedAtOnce = 8;
constexpr int kMosaicAtOnce = 8;  // of mosaic.cu, on their way together
// Blocks beyond this many add nothing on any device; the rest is done by the
// grid-stride loop. Kept small so that position + stride stays in 32 bits for
// as many tensors as possible.
constexpr int64_t kMaxBlocks = int64_t{1} << 18;
// The largest count whose positions, plus one grid stride, fit in an int.
constexpr int64_t kMaxNarrow = (int64_t{1} << 31) - kMaxBlocks * kThreads;
// Code beyond this many operations is not worth repeating for each of eight.
constexpr size_t kMaxOpsForEight = 12;
// With fewer vectors of eight multiprocessors have less than a block each, and
// compute for twice as long as with twice as many of four.
constexpr int64_t kFewVectors = int64_t{1} << 15;
// Of a column under large windows, in flight at once.
constexpr int64_t kPoolRowsAtOnce = 8;
uint32_t Blocks(int64_t count, int threads) {
  return static_cast<uint32_t>((count + threads - 1) / threads);
}

class SpecWriter {
 public:
  SpecWriter(const Schedule& schedule, const Kernel& kernel)
      : schedule_(schedule),
        kernel_(kernel),
        tensors_(schedule, kernel),
        element_(schedule, kernel.group.domain, &tensors_) {}

  KernelSpec Run() && {
    if (kernel_.group.anchor < 0) {
      Pointwise();
    } else {
      Anchor(schedule_.lowered.nodes[kernel_.group.anchor]);
    }
    for (const int node : kernel_.group.epilogue) {
      element_.Compute(schedule_.lowered.nodes[node]);
    }
    for (const Store& store : kernel_.stores) element_.StoreTo(store);
    Finish();
    HoldElement();
    AddPartials();

    spec_.formula = Formula();
    spec_.tensors = tensors_.list();
    std::erase_if(spec_.tensors,
                  [](const KernelTensor& tensor) { return tensor.is_kept; });
    spec_.element_body = element_.lines();
    spec_.index = NeedsWideIndex() ? "long long" : "int";
    return std::move(spec_);
  }

 private:
  const Dims& DimsOf(int value) const {
    return schedule_.lowered.values[value].desc.dims;
  }
  const std::string& NameOf(int value) const {
    return schedule_.lowered.values[value].name;
  }

  void Append(const std::vector<std::string>& lines) {
    spec_.constants.insert(spec_.constants.end(), lines.begin(), lines.end());
  }

  std::vector<std::string> Formula() const {
    std::vector<std::string> lines;
    for (const int node : kernel_.group.prologue) {
      lines.push_back(schedule_.lowered.nodes[node].text);
    }
    if (kernel_.group.anchor >= 0) {
      lines.push_back(schedule_.lowered.nodes[kernel_.group.anchor].text);
    }
    for (const int node : kernel_.group.epilogue) {
      lines.push_back(schedule_.lowered.nodes[node].text);
    }
    if (lines.empty()) lines.push_back("copies an input to an output");
    return lines;
  }

  // An entry with one thread for each element of the domain.
  void AddElementEntry(const std::string& symbol, const std::string& function) {
    AddEntryOf(symbol, function, NumElements(kernel_.group.domain));
  }

  void AddEntryOf(const std::string& symbol, const std::string& function,
                  int64_t threads, int of_block = kThreads) {
    const int64_t blocks =
        std::clamp<int64_t>((threads + of_block - 1) / of_block, 1, kMaxBlocks);
    spec_.entries.push_back(
        {symbol, function, of_block, {static_cast<uint32_t>(blocks), 1, 1}});
  }

  void Pointwise() {
    spec_.source_file = "pointwise.cu";
    Append(ShapeText("Output", kernel_.group.domain));
  }

  void AddDirection() {
    Append({fmt::format("static constexpr bool kBackwards = {};",
                        kernel_.backwards)});
  }

  // Once the code is written: how many neighbours a thread takes.
  void Finish() {
    if (kernel_.group.anchor < 0) return FinishPointwise();
    const Node& anchor = schedule_.lowered.nodes[kernel_.group.anchor];
    if (anchor.IsMosaicMove()) FinishMosaic(anchor);
  }

  void FinishPointwise() {
    const int64_t count = NumElements(kernel_.group.domain);
    held_vector_ = count < kMinVectorised ? 1 : WidthOfElement();
    if (count / held_vector_ < kFewVectors) {
      held_vector_ = std::min(held_vector_, 4);
    }
    Append({fmt::format("static constexpr int kVector = {};", held_vector_)});
    AddDirection();
    AddEntryOf("kiln_pointwise", "kiln::Pointwise", count / held_vector_);
  }

  // Eight neighbours where 2 bytes are the largest of whole tensors, else four.
  int WidthOfElement() const {
    if (kernel_.group.epilogue.size() > kMaxOpsForEight) return 4;
    for (const KernelTensor& tensor : tensors_.list()) {
      const auto access = element_.accesses().find(tensor.name);
      const bool is_whole =
          access != element_.accesses().end() && access->second == "at.i";
      if (is_whole && tensor.type == "float") return 4;
    }
    return 8;
  }

  void HoldElement() {
    if (held_vector_ == 1 && !holds_singles_) return;
    AddHeld(element_, kernel_.group.domain, held_vector_, "");
  }

  void AddHeld(const ElementCode& code, const Dims& domain, int width,
               const std::string& prefix) {
    const HeldText text =
        WriteHeld(code, tensors_.list(), VectorAxisOf(domain, width), prefix,
                  kernel_.reduce.has_value() && kernel_.reduce->streams);
    spec_.is_vectorised = true;
    spec_.members.insert(spec_.members.end(), text.lines.begin(),
                         text.lines.end());
  }

  void Anchor(const Node& node) {
    switch (node.kind) {
      case NodeKind::kConv2d:
        if (node.direct) return DirectConv(node, *node.direct);
        if (kernel_.depthwise) return Depthwise(node, *kernel_.depthwise);
        spec_.source_file = "conv2d.cu";
        Conv(node);
        return AddElementEntry("kiln_conv2d", "kiln::Conv2d");
      case NodeKind::kConvTranspose2d:
        spec_.source_file = "conv_transpose2d.cu";
        Conv(node);
        return AddElementEntry("kiln_conv_transpose2d",
                               "kiln::ConvTranspose2d");
      case NodeKind::kPool2d:
        return Pool(node);
      case NodeKind::kUnfold:
        spec_.source_file = "unfold.cu";
        return Unfold(node);
      case NodeKind::kTurn:
        spec_.source_file = "turn.cu";
        return Turn(node);
      case NodeKind::kJoin:
        spec_.source_file = "join.cu";
        return Join(node);
      case NodeKind::kMosaic:
      case NodeKind::kCut:
        spec_.source_file = "mosaic.cu";
        return Mosaic(node);
      case NodeKind::kSumColumns:
        return SumColumns(node);
      case NodeKind::kReduce:
        return Reduce(node);
      case NodeKind::kPointwise:
        return;
    }
  }

  void Conv(const Node& node) {
    const auto& conv = std::get<ConvAttributes>(node.attributes);
    const int input = ValueOf(node.operands[0]);
    const int weight = ValueOf(node.operands[1]);
    const int bias = ValueOf(node.operands[2]);
    const Dims& weight_dims = DimsOf(weight);
    const Pair kernel = {weight_dims[2], weight_dims[3]};
    Append(ShapeText("Input", DimsOf(input)));
    Append(ShapeText("Output", kernel_.group.domain));
    Append(
        {fmt::format("static constexpr Index kGroups = {};", conv.groups),
         PairText("Kernel", kernel), PairText("Stride", conv.stride),
         PairText("Padding", conv.padding), PairText("Dilation", conv.dilation),
         fmt::format("static constexpr bool kWrapsRows = {};", node.wraps_rows),
         fmt::format("static constexpr int kColumnsApart = {};",
                     node.columns_apart)});
    if (SplitRowsOf(schedule_, kernel_, 0)) {
      AddSplitOperands(schedule_, kernel_, &tensors_);
      if (kernel_.split_result) {
        AddSplitResult(schedule_, kernel_, &tensors_);
      }
    } else {
      tensors_.Read(input, "input");
      tensors_.Read(weight, "weight");
    }
    AddWindow(kernel, conv.stride, conv.padding, conv.dilation);
    AddOverrun(DimsOf(input));
    AddOverrun(weight_dims);

    AddBias(bias, node.results[0]);
  }

  // To the sum that the element begins with; -1: none.
  void AddBias(int bias, int result) {
    if (bias < 0) {
      spec_.element_argument = "float " + NameOf(result);
    } else {
      spec_.element_argument = "float sum";
      element_.Assign(NameOf(result),
                      "sum + " + element_.LoadAs(bias, "bias", "at.c"));
    }
    element_.Define(result);
  }

  void SumColumns(const Node& node) {
    const auto& conv = std::get<ConvAttributes>(node.attributes);
    const Dims& input = DimsOf(ValueOf(node.operands[0]));
    const Dims& output = kernel_.group.domain;
    spec_.source_file = "sum_columns.cu";
    Append(ShapeText("Input", input));
    Append(ShapeText("Output", output));
    Append({fmt::format("static constexpr int kColumns = {};",
                        input[1] / output[1]),
            fmt::format("static constexpr Index kDilation = {}, kPadding = {};",
                        conv.dilation[1], conv.padding[1])});
    AddDirection();
    tensors_.Read(ValueOf(node.operands[0]), "input");
    AddOverrun(input);
    AddWindow({1, input[1] / output[1]}, {1, 1}, {0, conv.padding[1]},
              {1, conv.dilation[1]});
    AddBias(ValueOf(node.operands[1]), node.results[0]);
    AddElementEntry("kiln_sum_columns", "kiln::SumColumns");
  }

  // Blocks have whole rows, of as many planes as there is room for.
  static int64_t ThreadsOfWalks(const Dims& tiles, int of_block) {
    const int64_t planes = of_block / tiles[3];
    return CeilDiv(tiles[0] * tiles[1], planes) * tiles[2] * of_block;
  }

  void Depthwise(const Node& node, const DepthwiseTile& tile) {
    const int input = ValueOf(node.operands[0]);
    const Dims& domain = kernel_.group.domain;
    spec_.source_file = "depthwise_conv2d.cu";
    Conv(node);
    const int64_t width = tile.walks  // whose threads are the input's, too
                              ? std::max(domain[3], DimsOf(input)[3])
                              : domain[3];
    const Dims tiles = {domain[0], domain[1], CeilDiv(domain[2], tile.rows),
                        CeilDiv(width, tile.columns)};
    Append(ShapeText("Tiles", tiles));
    Append(
        {fmt::format("using InputType = {};", tensors_.list()[0].type),
         fmt::format("static constexpr Index kMultiplier = {};",
                     domain[1] / DimsOf(input)[1]),
         fmt::format("static constexpr int kTileH = {}, kTileW = {}, "
                     "kVector = {};",
                     tile.rows, tile.columns, tile.vector),
         fmt::format("static constexpr bool kHoldsFilter = {};",
                     tile.holds_filter),
         fmt::format("static constexpr int kRowTaps = {};",
                     tile.row_taps > 0 ? int64_t{tile.row_taps}
                                       : DimsOf(ValueOf(node.operands[1]))[3]),
         fmt::format("static constexpr bool kWalks = {};", tile.walks)});
    if (tile.walks) {
      Append(
          {fmt::format("static constexpr int kThreads = {}, "
                       "kRowsAhead = {};",
                       tile.threads, tile.rows_ahead)});
    }
    held_vector_ = tile.vector;
    const int64_t threads =
        tile.walks ? ThreadsOfWalks(tiles, tile.threads) : NumElements(tiles);
    AddEntryOf("kiln_depthwise_conv2d", "kiln::DepthwiseConv2d", threads,
               tile.threads);
    spec_.entries.back().min_blocks = tile.min_blocks;
  }

  void DirectConv(const Node& node, const DirectTile& tile) {
    Conv(node);
    const int vector = kernel_.split_result ? kSplitVector : tile.vector;
    Append({fmt::format("using InputType = {};", tensors_.list()[0].type),
            fmt::format("using WeightType = {};", tensors_.list()[1].type),
            fmt::format("static constexpr int kThreads = {}, kVector = {};",
                        tile.threads, vector),
            fmt::format("static constexpr int kSharedBytes = {};",
                        tile.shared_bytes),
            BoolText("kSplitsResult", kernel_.split_result.has_value())});
    const DirectKernel kernel = DirectKernelOf(tile);
    Append(kernel.constants);
    spec_.source_file = kernel.source_file;
    if (!tile.As<DenseTile>()) held_vector_ = vector;
    holds_singles_ = tile.As<LinearTile>() != nullptr;
    EntrySpec entry{kernel.name,
                    kernel.function,
                    tile.threads,
                    {static_cast<uint32_t>(tile.blocks), 1, 1}};
    entry.dynamic_shared_bytes = tile.shared_bytes;
    entry.min_blocks = tile.min_blocks;
    entry.may_have_fewer = true;
    entry.cluster[0] = kernel.cluster;
    spec_.entries.push_back(std::move(entry));
  }

  void Pool(const Node& node) {
    const auto& pool = std::get<PoolAttributes>(node.attributes);
    const bool is_max = node.op == OpKind::kMaxPool2d;
    const Dims& input = DimsOf(ValueOf(node.operands[0]));
    Append(ShapeText("Input", input));
    Append(ShapeText("Output", kernel_.group.domain));
    Append({fmt::format("static constexpr bool kMax = {};", is_max),
            PairText("Kernel", pool.kernel_size),
            PairText("Stride", pool.stride), PairText("Padding", pool.padding),
            PairText("Dilation", pool.dilation)});
    if (!is_max) {
      Append({fmt::format("static constexpr bool kCountIncludePad = {};",
                          pool.count_include_pad),
              fmt::format("static constexpr Index kDivisor = {};  // 0: varies",
                          PoolDivisor(pool, input, kernel_.group.domain))});
    }
    AddWindow(pool.kernel_size, pool.stride, pool.padding, pool.dilation);
    counts_.push_back(pool.kernel_size[0] * pool.kernel_size[1]);
    const int vector = PoolVector(pool, input, kernel_.group.domain);
    held_vector_ = std::max(vector, 1);
    if (vector == 0 && PoolStripsOf(pool, kernel_.group.domain).count > 0) {
      PoolByColumns(pool);
    } else {
      PoolByThreads(pool, vector);
    }
    AddDirection();
    AddRead(node, held_vector_, "Input");
    spec_.element_argument = "float " + NameOf(node.results[0]);
    element_.Define(node.results[0]);
  }

  // Whether several rows of a window are in flight.
  bool LoadsPoolRows() const {
    return PoolLoadsAhead(schedule_.lowered, kernel_.group.prologue);
  }

  void PoolByThreads(const PoolAttributes& pool, int vector) {
    const Dims& domain = kernel_.group.domain;
    const int tall =
        vector == 1 && LoadsPoolRows() ? PoolTall(pool, domain) : 1;
    spec_.source_file = "pool2d.cu";
    Append({fmt::format("static constexpr bool kSmall = {};", vector > 0),
            fmt::format("static constexpr int kVector = {}, kTall = {}, "
                        "kRowsAtOnce = {};",
                        held_vector_, tall,
                        LoadsPoolRows() ? pool.kernel_size[0] : 1)});
    const Dims4 output = AlignDims(domain);
    AddEntryOf("kiln_pool2d", "kiln::Pool2d",
               NumElements(domain) / output[2] * CeilDiv(output[2], tall) /
                   held_vector_);
  }

  void PoolByColumns(const PoolAttributes& pool) {
    const PoolStrips strips = PoolStripsOf(pool, kernel_.group.domain);
    const int64_t at_once =
        LoadsPoolRows() ? std::min(pool.kernel_size[0], kPoolRowsAtOnce) : 1;
    spec_.source_file = "pool_columns.cu";
    Append({fmt::format("static constexpr int kThreads = {}, "
                        "kRowsAtOnce = {};",
                        kThreads, at_once),
            fmt::format("static constexpr int kStripRows = {}, "
                        "kStripOutputs = {};",
                        strips.rows, strips.outputs)});
    AddEntryOf("kiln_pool2d", "kiln::PoolByColumns", strips.count * kThreads);
  }

  void Unfold(const Node& node) {
    const auto& windows = std::get<PoolAttributes>(node.attributes);
    const TensorDesc& input =
        schedule_.lowered.values[ValueOf(node.operands[0])].desc;
    const int vector = UnfoldVector(windows.kernel_size, input);
    Append(ShapeText("Input", input.dims));
    Append(ShapeText("Output", kernel_.group.domain));
    Append({PairText("Kernel", windows.kernel_size),
            fmt::format("static constexpr int kVector = {};", vector)});
    AddDirection();
    AddRead(node, vector, "Input");
    spec_.element_argument = "float " + NameOf(node.results[0]);
    element_.Define(node.results[0]);
    AddEntryOf("kiln_unfold", "kiln::Unfold",
               NumElements(kernel_.group.domain) / vector);
  }

  void Turn(const Node& node) {
    constexpr int64_t kSide = 32;  // of a block's square, as turn.cu has it
    const Dims& input = DimsOf(ValueOf(node.operands[0]));
    const Dims& output = kernel_.group.domain;
    const bool gathers = output[0] == 1;
    const int64_t rows = gathers ? input[0] : input[1];
    const int64_t pitch = NumElements(input) / rows;
    const int64_t columns = gathers ? pitch : output[0];
    const int64_t output_pitch = NumElements(output) / columns;
    Append(ShapeText("Input", input));
    Append(ShapeText("Output", output));
    Append({fmt::format("static constexpr Index kRows = {}, kColumns = {};",
                        rows, columns),
            fmt::format("static constexpr Index kInputPitch = {}, "
                        "kOutputPitch = {};",
                        pitch, output_pitch)});
    AddDirection();
    AddRead(node, 1, "Input");
    spec_.element_argument = "float " + NameOf(node.results[0]);
    element_.Define(node.results[0]);
    const int64_t squares =
        CeilDiv(output_pitch, kSide) * CeilDiv(columns, kSide);
    spec_.entries.push_back({"kiln_turn",
                             "kiln::Turn",
                             kThreads,
                             {static_cast<uint32_t>(squares), 1, 1}});
  }

  void Join(const Node& node) {
    AddMove(node, kJoinedAtOnce, 1);
    const int64_t of_block = kThreads * kJoinedAtOnce;
    counts_.push_back(NumElements(kernel_.group.domain) + of_block);
    spec_.entries.push_back(
        {"kiln_join",
         "kiln::Join",
         kThreads,
         {Blocks(NumElements(kernel_.group.domain), of_block), 1, 1}});
  }

  void Mosaic(const Node& node) {
    const MosaicBlocks blocks = MosaicBlocksOf(schedule_.lowered, node);
    const DataType read =
        schedule_.lowered.values[ValueOf(node.operands[0])].desc.dtype;
    const int64_t width = read == DataType::kF32 ? 4 : 8;
    const bool cuts = node.kind == NodeKind::kCut;
    AddMove(node, kMosaicAtOnce,
            cuts ? blocks.WholeVector(width) : blocks.ImageVector(width));
    Append({fmt::format(
        "static constexpr int kAcross = {}, kPitch = {}, "
        "kChannels = {};",
        node.across, std::get<PoolAttributes>(node.attributes).stride[1],
        blocks.channels)});
    spec_.entries.push_back({cuts ? "kiln_cut" : "kiln_mosaic",
                             cuts ? "kiln::CutMosaic" : "kiln::Mosaic",
                             kThreads,
                             {static_cast<uint32_t>(blocks.count), 1, 1}});
  }

  void FinishMosaic(const Node& node) {
    const MosaicBlocks blocks = MosaicBlocksOf(schedule_.lowered, node);
    const int width = WidthOfElement();
    held_vector_ = node.kind == NodeKind::kCut ? blocks.ImageVector(width)
                                               : blocks.WholeVector(width);
    Append({fmt::format("static constexpr int kVector = {};", held_vector_)});
  }

  // What moves elements reads, `vector` neighbours at a time.
  void AddMove(const Node& node, int at_once, int vector) {
    Append(ShapeText("Input", DimsOf(ValueOf(node.operands[0]))));
    Append(ShapeText("Output", kernel_.group.domain));
    AddDirection();
    AddRead(node, vector, "Input");
    spec_.element_argument = "float " + NameOf(node.results[0]);
    element_.Define(node.results[0]);
    Append(
        {fmt::format("static constexpr int kThreads = {}, kAtOnce = {}, "
                     "kReadVector = {};",
                     kThreads, at_once, vector)});
  }

  // Spec::Read: one element of the anchor's input.
  void AddRead(const Node& node, int width, const std::string& prefix) {
    const int input = ValueOf(node.operands[0]);
    ElementCode code(schedule_, DimsOf(input), &tensors_);
    const bool are_single = width == 1;
    if (are_single && kernel_.reduce && kernel_.reduce->streams) {
      code.StreamElements();
    }
    for (const int prologue : kernel_.group.prologue) {
      code.Compute(schedule_.lowered.nodes[prologue]);
    }
    spec_.reads_elements = true;
    spec_.read_result = code.Local(input);
    spec_.read_body = code.lines();
    if (width > 1) {
      AddHeld(code, DimsOf(input), width, prefix);
    }
    counts_.push_back(NumElements(DimsOf(input)));
  }

  void Reduce(const Node& node) {
    const ReduceGeometry& geometry = *kernel_.reduce;
    const ReduceView& view = geometry.view;
    spec_.source_file = "reduce.cu";
    Append(ShapeText("Input", DimsOf(ValueOf(node.operands[0]))));
    Append(ShapeText("Output", kernel_.group.domain));
    Append({"struct View {",
            fmt::format("  static constexpr Index kKept0 = {}, kReduced0 = {};",
                        view.kept0, view.reduced0),
            fmt::format("  static constexpr Index kKept1 = {}, kReduced1 = {};",
                        view.kept1, view.reduced1),
            fmt::format("  static constexpr Index kKept2 = {};", view.kept2),
            "};"});
    Append({fmt::format("using Reducer = kiln::{};", ReducerName(node.op)),
            fmt::format("static constexpr bool kRows = {};", geometry.rows()),
            fmt::format("static constexpr int kThreads = {}, kLanes = {}, "
                        "kSplits = {};",
                        geometry.threads, geometry.lanes, geometry.splits),
            fmt::format("static constexpr int kVector = {}, kAtOnce = {};",
                        geometry.vector, geometry.at_once)});
    if (geometry.splits > 1) {
      Append(
          {fmt::format("static constexpr int kMergeThreads = {}, "
                       "kMergeLanes = {};",
                       kThreads, MergeLanes(geometry))});
    }
    AddDirection();
    counts_.push_back(view.outputs() *
                      std::max(geometry.splits, MergeLanes(geometry)));
    AddRead(node, geometry.vector, "");
    spec_.element_argument = "const Reducer& state";
    DefineResults(node, view.steps());
    AddReduceEntries(geometry);
  }

  // From the reducer's state to the values of the plan.
  void DefineResults(const Node& node, int64_t steps) {
    const std::vector<std::string> expressions = ReducerResults(node, steps);
    for (size_t i = 0; i < expressions.size(); ++i) {
      element_.Assign(NameOf(node.results[i]), expressions[i]);
      element_.Define(node.results[i]);
    }
  }

  // Threads that merge the states of an output: a power of two.
  static int MergeLanes(const ReduceGeometry& geometry) {
    const auto lanes =
        static_cast<uint64_t>(CeilDiv(geometry.splits, kMaxStates));
    return static_cast<int>(std::min<uint64_t>(std::bit_ceil(lanes), kThreads));
  }

  void AddReduceEntries(const ReduceGeometry& geometry) {
    EntrySpec reduce{"kiln_reduce",
                     "kiln::Reduce",
                     geometry.threads,
                     {static_cast<uint32_t>(geometry.blocks()),
                      static_cast<uint32_t>(geometry.splits), 1}};
    reduce.min_blocks = geometry.min_blocks;
    reduce.may_have_fewer = true;
    spec_.entries.push_back(std::move(reduce));
    if (geometry.splits == 1) return;
    spec_.entries.push_back(
        {"kiln_merge_splits",
         "kiln::MergeSplits",
         kThreads,
         {Blocks(geometry.view.outputs() * MergeLanes(geometry), kThreads), 1,
          1}});
  }

  void AddPartials() {
    if (!kernel_.partials.has_value()) return;
    tensors_.Add({"partials", "Reducer", true, *kernel_.partials});
    Append({fmt::format(
        "static_assert(sizeof(Reducer) == {}, \"The workspace "
        "is laid out for this.\");",
        ReducerStateBytes(schedule_.lowered.nodes[kernel_.group.anchor]))});
  }

  // Coordinates reach as far as the windows do.
  void AddWindow(const Pair& kernel, const Pair& stride, const Pair& padding,
                 const Pair& dilation) {
    const Dims4 output = AlignDims(kernel_.group.domain);
    for (size_t i = 0; i < 2; ++i) {
      counts_.push_back(output[2 + i] * stride[i] + 2 * padding[i] +
                        kernel[i] * dilation[i]);
    }
  }

  // ChannelDot steps past the end of its last channel.
  void AddOverrun(const Dims& dims) {
    counts_.push_back(NumElements(dims) + NumElements(dims) / dims[0]);
  }

  bool NeedsWideIndex() const {
    int64_t count = NumElements(kernel_.group.domain);
    for (const int64_t other : counts_) count = std::max(count, other);
    return count > kMaxNarrow;
  }

  const Schedule& schedule_;
  const Kernel& kernel_;
  KernelTensors tensors_;
  ElementCode element_;
  KernelSpec spec_;
  int held_vector_ = 1;  // neighbours that Spec::Element's tensors are held for
  bool holds_singles_ = false;   // tensors are held for one element, too
  std::vector<int64_t> counts_;  // that an Index must hold
};

KernelSpec MakeSpec(const Schedule& schedule, const Kernel& kernel) {
  if (kernel.packs()) return MakePackSpec(schedule, kernel);
  if (kernel.lays()) return MakeLaySpec(schedule, kernel);
  if (kernel.splits()) return MakeSplitSpec(schedule, kernel);
  if (kernel.bounds_results()) return MakeBoundSpec(schedule, kernel);
  if (kernel.correlation) return MakeCorrelationSpec(schedule, kernel);
  if (kernel.conv.has_value()) return MakeConvSpec(schedule, kernel);
  if (kernel.rows.has_value()) {
    return kernel.rows->is_chain() ? MakeRowChainSpec(schedule, kernel)
                                   : MakeRowSpec(schedule, kernel);
  }
  return SpecWriter(schedule, kernel).Run();
}

}  // namespace

KernelSpec MakeKernelSpec(const Schedule& schedule, const Kernel& kernel) {
  KernelSpec spec = MakeSpec(schedule, kernel);
  spec.overlaps = kernel.overlaps;
  return spec;
}

}  // namespace kiln
