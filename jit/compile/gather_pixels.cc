#include "jit/compile/gather_pixels.h"

#include <algorithm>
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
// Of the image of all pixels; tiles fit in it.
constexpr int64_t kWidth = 64;

class Gathering {
 public:
  explicit Gathering(LoweredPlan plan) : plan_(std::move(plan)) {}

  LoweredPlan Run() && {
    std::vector<Node> nodes = std::move(plan_.nodes);
    plan_.nodes.clear();
    for (Node& node : nodes) {
      if (HasSinglePixels(node) || TakesSinglePixels(node)) {
        Gather(std::move(node));
      } else {
        plan_.AddNode(std::move(node));
      }
    }
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

  void Gather(Node conv) {
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
    const int64_t width = std::min(images, kWidth);
    const int64_t height = CeilDiv(images, width);
    const auto pixels = [&](int64_t channels) -> Dims {
      return {1, channels, height, width};
    };
    const int gathered = plan_.AddLike(input, "_gathered",
                                       pixels(transposed ? filter[0] : behind));
    const int apart = plan_.AddLike(result, "_gathered",
                                    pixels(transposed ? behind : filter[0]));
    plan_.AddMove(NodeKind::kTurn, input, gathered);
    conv.operands[0] = ValueId{gathered};
    conv.results[0] = apart;
    auto& attributes = std::get<ConvAttributes>(conv.attributes);
    attributes.stride = attributes.dilation = {1, 1};
    attributes.padding = attributes.output_padding = {0, 0};
    Operand bias;
    if (transposed) std::swap(bias, conv.operands[2]);
    plan_.AddNode(std::move(conv));
    if (ValueOf(bias) < 0) return plan_.AddMove(NodeKind::kTurn, apart, result);
    const int turned =
        plan_.AddLike(result, "_turned", plan_.values[result].desc.dims);
    plan_.AddMove(NodeKind::kTurn, apart, turned);
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
};

}  // namespace

LoweredPlan GatherPixels(LoweredPlan plan) {
  return Gathering(std::move(plan)).Run();
}

}  // namespace kiln
