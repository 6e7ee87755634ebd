#include "jit/compile/conv_spec.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "fmt/format.h"
#include "jit/compile/conv_constants.h"
#include "jit/compile/spec_text.h"
#include "jit/compile/warpgroup_text.h"

namespace kiln {
namespace {

constexpr int kPackThreads = 256;
constexpr int kMergeThreads = 32;
constexpr int64_t kMaxPackBlocks = 1024;

class ConvSpecWriter {
 public:
  ConvSpecWriter(const Schedule& schedule, const Kernel& kernel)
      : schedule_(schedule),
        kernel_(kernel),
        geometry_(*kernel.conv),
        tensors_(schedule),
        inner_(schedule, kernel.group.domain, &tensors_),
        outer_(schedule, TailDomain(), &tensors_) {}

  KernelSpec Run() && {
    const bool has_groups = geometry_.has_groups();
    spec_.source_file = has_groups ? "conv_wgmma.cu" : "conv_mma.cu";
    spec_.constants = TileConstants(geometry_);
    Append(has_groups ? StageConstants(geometry_) : PatchConstants(geometry_));
    if (has_groups) AppendProducts();
    Convolution();
    if (kernel_.group.tail < 0) {
      Finish("kStore", "kiln_conv", 0);
      spec_.element_argument = SumArgument();
      spec_.element_body = inner_.lines();
    } else {
      Tail(NodeAt(kernel_.group.tail));
    }
    spec_.formula = Formula();
    spec_.tensors = tensors_.list();
    spec_.index = NeedsWideIndex() ? "long long" : "int";
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
  std::string SumArgument() const {
    const Node& node = NodeAt(kernel_.group.anchor);
    const std::string name = HasBias() ? "sum" : NameOf(node.results[0]);
    return "float " + name + ", bool inside";
  }

  // From the sum to the last pointwise value before the tail.
  void Convolution() {
    const Node& node = NodeAt(kernel_.group.anchor);
    tensors_.Read(ValueOf(node.operands[0]), "input");
    tensors_.Add({"packed", "unsigned", false, *kernel_.packed});
    const int result = node.results[0];
    if (HasBias()) {
      inner_.Assign(
          NameOf(result),
          fmt::format("sum + kiln::Load({}, at.c)",
                      tensors_.Read(ValueOf(node.operands[2]), "bias")));
    }
    inner_.Define(result);
    for (const int next : kernel_.group.epilogue) {
      inner_.Compute(NodeAt(next));
    }
    for (const Store& store : kernel_.stores) {
      if (IsInner(store.value)) inner_.StoreTo(store, "inside");
    }
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
    } else {
      ChannelsTail(node);
    }
    for (const int next : kernel_.group.tail_epilogue) {
      outer_.Compute(NodeAt(next));
    }
    for (const Store& store : kernel_.stores) {
      if (!IsInner(store.value) && !IsExtreme(store.value)) {
        outer_.StoreTo(store);
      }
    }
    const int input = ValueOf(node.operands[0]);
    spec_.reads_elements = true;
    spec_.read_argument = SumArgument();
    spec_.read_result = inner_.Local(input);
    spec_.read_body = inner_.lines();
    spec_.element_body = outer_.lines();
  }

  void DefineResults(const Node& node, int64_t steps) {
    const std::vector<std::string> results = ReducerResults(node, steps);
    for (size_t i = 0; i < results.size(); ++i) {
      outer_.Assign(NameOf(node.results[i]), results[i]);
      outer_.Define(node.results[i]);
    }
    spec_.element_argument = "const Reducer& state";
  }

  void AppendProducts() {
    Append({IntsText("kProducerGroups", geometry_.producers, "kOctetsAtOnce",
                     geometry_.octets_at_once()),
            IntsText("kProducerRegisters", geometry_.producer_registers(),
                     "kConsumerRegisters", geometry_.consumer_registers())});
    Append(WarpgroupProducts(geometry_));
  }

  // Words of the windows' values: eight channels of each warp, rows padded to
  // four columns (WindowStage in conv_tails.cuh).
  int64_t WindowWords() const {
    if (geometry_.channel_rows) return 0;
    const int64_t columns = (geometry_.tile_w + 3) / 4 * 4;
    const int64_t pixels = geometry_.tile_h * columns;
    return Parts().second * 8 * ((pixels + 27) / 32 * 32 + 4);
  }

  // Where the windows' extremes go.
  void Extremes(const Node& node) {
    const auto& pool = std::get<PoolAttributes>(node.attributes);
    Append(ShapeText("Windows", DimsOf(node.results[0])));
    Append({PairText("Pool", pool.kernel_size)});
    ElementCode code(schedule_, DimsOf(node.results[0]), &tensors_);
    for (const int result : node.results) code.Define(result);
    for (const Store& store : kernel_.stores) {
      if (IsExtreme(store.value)) code.StoreTo(store, "inside");
    }
    spec_.members = {
        "static __device__ void StoreExtremes(const Tensors& t,",
        "                                     const kiln::Point<Index>& at,",
        fmt::format("                                     float {},",
                    NameOf(node.results[0])),
        fmt::format("                                     float {},",
                    NameOf(node.results[1])),
        "                                     bool inside) {"};
    for (const std::string& line : code.lines()) {
      spec_.members.push_back("  " + line);
    }
    spec_.members.push_back("}");
  }

  bool IsExtreme(int value) const {
    const int extremes = kernel_.group.extremes;
    if (extremes < 0) return false;
    const std::vector<int>& results = NodeAt(extremes).results;
    return value == results[0] || value == results[1];
  }

  void PoolTail(const Node& node) {
    const auto& pool = std::get<PoolAttributes>(node.attributes);
    Append({fmt::format("static constexpr bool kPoolsMax = {};",
                        node.op == OpKind::kMaxPool2d),
            PairText("Pool", pool.kernel_size)});
    spec_.element_argument = "float " + NameOf(node.results[0]);
    outer_.Define(node.results[0]);
    Finish("kPool", "kiln_conv_pool", WindowWords());
  }

  void ChannelsTail(const Node& node) {
    Append({fmt::format("using Reducer = kiln::{};", ReducerName(node.op)),
            fmt::format("static __device__ float Neutral() {{ return {}; }}",
                        Neutral(node.op))});
    DefineResults(node, kernel_.group.domain[1]);
    const int64_t pixels = geometry_.tile_h * geometry_.tile_w;
    Finish("kChannels", "kiln_conv_reduce",
           (Parts().second - 1) * pixels * ReducerStateBytes(node) / 4);
  }

  static std::string_view Neutral(OpKind op) {
    switch (op) {
      case OpKind::kAmax:
      case OpKind::kLogSumExp:
        return "-kiln::Infinity()";
      case OpKind::kAmin:
        return "kiln::Infinity()";
      default:
        return "0.0f";
    }
  }

  void MomentsTail(const Node& node) {
    const int64_t groups =
        std::get<GroupNormAttributes>(node.attributes).num_groups;
    const int64_t channels = kernel_.group.domain[1] / groups;
    Append({fmt::format("using Reducer = kiln::{};", ReducerName(node.op)),
            fmt::format("static constexpr int kNormGroups = {}, "
                        "kGroupChannels = {};",
                        groups, channels),
            fmt::format("static constexpr int kSplits = {};",
                        geometry_.Splits(channels))});
    DefineResults(node, 0);
    Append({fmt::format("static constexpr bool kHasExtremes = {};",
                        kernel_.group.extremes >= 0)});
    if (kernel_.group.extremes >= 0) {
      Extremes(NodeAt(kernel_.group.extremes));
    }
    const int64_t slots =
        geometry_.block_channels() / (channels % 2 == 0 ? 2 : 1);
    const int64_t scratch =
        geometry_.channel_rows ? 0 : Parts().first * slots * 3;
    Finish("kMoments", "kiln_conv_statistics",
           kernel_.group.extremes < 0 ? scratch
                                      : std::max(scratch, WindowWords()));
    tensors_.Add({"partials", "Reducer", true, *kernel_.partials});
    spec_.entries.push_back(
        {"kiln_merge_partials",
         "kiln::MergePartials",
         kMergeThreads,
         {static_cast<uint32_t>(kernel_.group.domain[0] * groups), 1, 1}});
  }

  // Warps that share the pixels of a tile, and its channels, where pixels are
  // the rows of the product.
  std::pair<int64_t, int64_t> Parts() const {
    return {geometry_.rows() / (16 * geometry_.tiles_m),
            geometry_.block_channels() / (8 * geometry_.tiles_n)};
  }

  // Whether statistics are taken from the sums as they are.
  bool StaysInRegisters() const {
    const KernelGroup& group = kernel_.group;
    if (!group.epilogue.empty() || StoresInner()) return false;
    if (group.extremes < 0) return true;
    const auto& pool =
        std::get<PoolAttributes>(NodeAt(group.extremes).attributes);
    const int64_t width = pool.kernel_size[1];
    return width == 2 || width == 4 || width == 8;
  }
  bool StoresInner() const {
    return std::any_of(
        kernel_.stores.begin(), kernel_.stores.end(),
        [&](const Store& store) { return IsInner(store.value); });
  }

  // The launch of the convolution, whose tail needs `scratch_words`.
  void Finish(const std::string& tail, const std::string& symbol,
              int64_t scratch_words) {
    if (geometry_.channel_rows) {
      const bool has_states = tail == "kMoments";
      const int64_t states =
          has_states ? (geometry_.state_bytes() + 15) / 16 * 4 : 0;
      const bool has_planes = !has_states || !StaysInRegisters();
      Append(
          {IntText("kStateWords", states), BoolText("kHasPlanes", has_planes)});
      scratch_words = states + (has_planes ? geometry_.plane_bytes() / 4 : 0);
    }
    if (geometry_.has_groups() && !geometry_.channel_rows) {
      Append({BoolText("kHasPlanes", false)});
    }
    const int64_t bytes = geometry_.shared_bytes() + scratch_words * 4;
    Append({fmt::format("static constexpr kiln::Tail kTail = kiln::Tail::{};",
                        tail),
            fmt::format("static constexpr int kScratchWords = {}, "
                        "kSharedBytes = {};",
                        scratch_words, bytes)});
    EntrySpec entry{
        symbol, geometry_.has_groups() ? "kiln::ConvWgmma" : "kiln::ConvMma",
        static_cast<int>(geometry_.threads())};
    entry.grid = {static_cast<uint32_t>(geometry_.blocks()), 1, 1};
    entry.dynamic_shared_bytes = bytes;
    entry.min_blocks = geometry_.resident_blocks;
    spec_.entries.push_back(std::move(entry));
  }

  bool NeedsWideIndex() const {
    const ConvProblem& p = geometry_.problem;
    int64_t count = std::max(NumElements(kernel_.group.domain),
                             p.input[0] * p.input[1] * p.input[2] * p.input[3]);
    // Tiles reach past the edges.
    count += 64 * p.output[3] * p.output[1];
    return count > std::numeric_limits<int32_t>::max();
  }

  const Schedule& schedule_;
  const Kernel& kernel_;
  const ConvGeometry& geometry_;
  KernelTensors tensors_;
  ElementCode inner_;  // on the convolution's elements
  ElementCode outer_;  // on those of the tail
  KernelSpec spec_;
};

}  // namespace

KernelSpec MakeConvSpec(const Schedule& schedule, const Kernel& kernel) {
  return ConvSpecWriter(schedule, kernel).Run();
}

KernelSpec MakePackSpec(const Schedule& schedule, const Kernel& kernel) {
  const ConvGeometry& geometry = *kernel.conv;
  const Node& node = schedule.lowered.nodes[kernel.group.anchor];
  KernelTensors tensors(schedule);
  tensors.Read(ValueOf(node.operands[1]), "weight");
  tensors.Add({"packed", "unsigned", true, *kernel.packed});
  KernelSpec spec;
  spec.formula = {"packs the weights of " + node.text};
  const bool has_groups = geometry.has_groups();
  spec.source_file = has_groups ? "pack_halves.cu" : "pack_weights.cu";
  spec.index = "int";
  spec.constants = TileConstants(geometry);
  const std::vector<std::string> more =
      has_groups ? StageConstants(geometry) : PatchConstants(geometry);
  spec.constants.insert(spec.constants.end(), more.begin(), more.end());
  spec.constants.push_back(
      BoolText("kTransposed", geometry.problem.transposed));
  spec.tensors = tensors.list();
  spec.has_element = false;
  EntrySpec entry{"kiln_pack_weights",
                  has_groups ? "kiln::PackHalves" : "kiln::PackWeights",
                  kPackThreads};
  const int64_t threads =
      has_groups ? geometry.scale_count() * 32
                 : geometry.packed_bytes() / 4 / (2 * geometry.weight_parts());
  const int64_t blocks = (threads + kPackThreads - 1) / kPackThreads;
  entry.grid[0] = static_cast<uint32_t>(
      has_groups ? blocks : std::min(blocks, kMaxPackBlocks));
  spec.entries.push_back(std::move(entry));
  return spec;
}

}  // namespace kiln
