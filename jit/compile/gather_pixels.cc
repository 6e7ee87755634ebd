#include "jit/compile/gather_pixels.h"

#include <map>
#include <set>
#include <utility>
#include <variant>

#include "fmt/format.h"
#include "jit/compile/reshape_images.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// A rule for all devices: where images are fewer, or blocks, each of which has
// a pixel of its own, than large devices run at once, two more kernels are not
// worth it.
constexpr int64_t kFewestImages = 16;
constexpr int64_t kFewestBlocks = 128;
constexpr int64_t kChannelsOfBlock = 128;
// Of the image of all pixels: tiles fit in it, and rows are whole accesses.
constexpr int64_t kWidth = 64;
constexpr int64_t kLeastWidth = 16;
constexpr int64_t kColumnStep = 8;

// That leaves no place behind the last image, if there is one.
int64_t WidthFor(int64_t images) {
  if (images <= kWidth) return images;
  for (int64_t width = kWidth; width >= kLeastWidth; width -= kColumnStep) {
    if (images % width == 0) return width;
  }
  return kWidth;
}

class Gathering {
 public:
  explicit Gathering(LoweredPlan plan) : plan_(std::move(plan)) {}

  LoweredPlan Run() && {
    std::vector<Node> nodes = std::move(plan_.nodes);
    plan_.nodes.clear();
    for (Node& node : nodes) {
      if (HasSinglePixels(node) || TakesSinglePixels(node)) {
        Gather(std::move(node));
      } else if (MayStayGathered(node)) {
        AddGathered(std::move(node));
      } else {
        for (const Operand& operand : node.operands) Apart(ValueOf(operand));
        plan_.AddNode(std::move(node));
      }
    }
    for (const PlanOutput& output : plan_.outputs) Apart(output.value.index);
    return std::move(plan_);
  }

 private:
  const TensorDesc& DescOf(const Operand& operand) const {
    return plan_.values[ValueOf(operand)].desc;
  }

  // Whether the filter is as large as the image.
  bool HasSinglePixels(const Node& node) const {
    if (!IsLinearLayer(plan_, node) || node.direct) return false;
    const Dims& input = DescOf(node.operands[0]).dims;
    const Dims& filter = DescOf(node.operands[1]).dims;
    if (!AreMany(input[0], filter[0])) return false;
    return filter[2] * filter[3] == 1 ||
           ValueOf(node.operands[1]) < plan_.num_inputs;
  }

  // Whether the result is a filter times a number: all of it, side by side.
  bool TakesSinglePixels(const Node& node) const {
    if (node.kind != NodeKind::kConvTranspose2d) return false;
    const Dims& input = DescOf(node.operands[0]).dims;
    const Dims& filter = DescOf(node.operands[1]).dims;
    const Dims& result = plan_.values[node.results[0]].desc.dims;
    const int64_t outputs = filter[1] * filter[2] * filter[3];
    const auto& conv = std::get<ConvAttributes>(node.attributes);
    if (conv.groups != 1 || conv.padding != Pair{0, 0}) return false;
    if (conv.dilation != Pair{1, 1}) return false;
    if (input[2] * input[3] > 1 || !AreMany(input[0], outputs)) return false;
    if (filter[2] != result[2] || filter[3] != result[3]) return false;
    return ValueOf(node.operands[1]) < plan_.num_inputs &&
           ValueOf(node.operands[2]) < plan_.num_inputs;
  }

  static bool AreMany(int64_t images, int64_t outputs) {
    return images >= kFewestImages &&
           images * CeilDiv(outputs, kChannelsOfBlock) > kFewestBlocks;
  }

  // Of all images: an image of so many channels.
  static Dims PixelsOf(int64_t images, int64_t channels) {
    const int64_t width = WidthFor(images);
    return {1, channels, CeilDiv(images, width), width};
  }

  // `value` as an image of all pixels.
  int Gathered(int value, const Dims& pixels) {
    const auto known = gathered_.find(value);
    if (known != gathered_.end()) return known->second;
    const int gathered = plan_.AddLike(value, "_gathered", pixels);
    plan_.AddMove(NodeKind::kTurn, value, gathered);
    return gathered_[value] = gathered;
  }

  // Has `value`, if it is one, made as the plan has it.
  void Apart(int value) {
    if (waiting_.erase(value) == 0) return;
    plan_.AddMove(NodeKind::kTurn, gathered_.at(value), value);
  }

  // Whether a pointwise op goes on with pixels that are gathered: what else it
  // reads is so, too, or alike for all images. Others it would have to turn.
  bool MayStayGathered(const Node& node) const {
    if (node.kind != NodeKind::kPointwise) return false;
    const Dims& dims = plan_.values[node.results[0]].desc.dims;
    bool goes_on = false;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const int value = ValueOf(node.operands[i]);
      const bool is_of_norm = node.op == OpKind::kBatchNorm && i > 0;
      if (value < 0 || is_of_norm) continue;
      const bool waits = waiting_.contains(value);
      const bool has_pixels = plan_.values[value].desc.dims == dims;
      const bool may_stay = has_pixels ? gathered_.contains(value)
                                       : !waits && IsOfChannels(value, dims[1]);
      if (!may_stay) return false;
      goes_on = goes_on || waits;
    }
    return goes_on;
  }

  // A number of each channel, or one.
  bool IsOfChannels(int value, int64_t channels) const {
    const Dims4 dims = AlignDims(plan_.values[value].desc.dims);
    return dims[0] == 1 && (dims[1] == 1 || dims[1] == channels) &&
           dims[2] == 1 && dims[3] == 1;
  }

  void AddGathered(Node node) {
    const int result = node.results[0];
    const Dims dims = plan_.values[result].desc.dims;
    const Dims pixels = PixelsOf(dims[0], dims[1]);
    for (Operand& operand : node.operands) {
      const int value = ValueOf(operand);
      if (value < 0 || plan_.values[value].desc.dims != dims) continue;
      operand = ValueId{gathered_.at(value)};
    }
    node.results[0] = plan_.AddLike(result, "_gathered", pixels);
    Wait(result, node.results[0]);
    plan_.AddNode(std::move(node));
  }

  // Until somebody wants it apart, `value` is what `gathered` has.
  void Wait(int value, int gathered) {
    gathered_[value] = gathered;
    waiting_.insert(value);
  }

  void Gather(Node conv) {
    Apart(ValueOf(conv.operands[1]));
    const bool transposed = conv.kind == NodeKind::kConvTranspose2d;
    const int input = ValueOf(conv.operands[0]);
    const int result = conv.results[0];
    const Dims filter = DescOf(conv.operands[1]).dims;
    const int64_t images = DescOf(conv.operands[0]).dims[0];
    const int64_t behind = filter[1] * filter[2] * filter[3];
    if (filter[2] * filter[3] > 1) {
      conv.operands[1] =
          View(ValueOf(conv.operands[1]), "_flat", {filter[0], behind, 1, 1});
    }
    const int gathered =
        Gathered(input, PixelsOf(images, transposed ? filter[0] : behind));
    const int together = plan_.AddLike(
        result, "_gathered", PixelsOf(images, transposed ? behind : filter[0]));
    conv.operands[0] = ValueId{gathered};
    conv.results[0] = together;
    auto& attributes = std::get<ConvAttributes>(conv.attributes);
    attributes.stride = attributes.dilation = {1, 1};
    attributes.padding = attributes.output_padding = {0, 0};
    Operand bias;
    if (transposed) std::swap(bias, conv.operands[2]);
    plan_.AddNode(std::move(conv));
    const Dims dims = plan_.values[result].desc.dims;
    // Behind the last image there may be zeros, which ops could make anything.
    if (!transposed && images % WidthFor(images) == 0) {
      return Wait(result, together);
    }
    if (ValueOf(bias) < 0) {
      return plan_.AddMove(NodeKind::kTurn, together, result);
    }
    const int turned = plan_.AddLike(result, "_turned", dims);
    plan_.AddMove(NodeKind::kTurn, together, turned);
    AddBias(turned, View(ValueOf(bias), "_column", {filter[1], 1, 1}), result);
  }

  void AddBias(int of, const Operand& bias, int result) {
    plan_.AddNode(
        {NodeKind::kPointwise,
         OpKind::kAdd,
         {},
         {ValueId{of}, bias},
         {result},
         fmt::format("{} = add({}, {})", plan_.values[result].name,
                     plan_.values[of].name, plan_.values[ValueOf(bias)].name)});
  }

  // An input by other dims.
  Operand View(int value, const char* suffix, const Dims& dims) {
    const int view = plan_.AddLike(value, suffix, dims);
    plan_.values[view].view_of = value;
    return ValueId{view};
  }

  LoweredPlan plan_;
  // What has been gathered, by what it is of.
  std::map<int, int> gathered_;
  // Of these, what no node makes until Apart: to be called for each operand
  // that a new node does not take gathered.
  std::set<int> waiting_;
};

}  // namespace

LoweredPlan GatherPixels(LoweredPlan plan) {
  return Gathering(std::move(plan)).Run();
}

}  // namespace kiln
