#include "jit/compile/gather_pixels.h"

#include <algorithm>
#include <utility>
#include <variant>

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
      if (HasSinglePixels(node)) {
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
    if (node.kind != NodeKind::kConv2d) return false;
    const auto& conv = std::get<ConvAttributes>(node.attributes);
    const Dims& input = DescOf(node.operands[0]).dims;
    const Dims& filter = DescOf(node.operands[1]).dims;
    if (conv.groups != 1 || conv.padding != Pair{0, 0}) return false;
    const int64_t blocks = input[0] * CeilDiv(filter[0], kChannelsOfBlock);
    if (input[0] < kFewestImages || blocks <= kFewestBlocks) return false;
    if (conv.dilation != Pair{1, 1}) return false;
    if (filter[2] != input[2] || filter[3] != input[3]) return false;
    return filter[2] * filter[3] == 1 ||
           ValueOf(node.operands[1]) < plan_.num_inputs;
  }

  void Gather(Node conv) {
    const int input = ValueOf(conv.operands[0]);
    const int result = conv.results[0];
    const Dims filter = DescOf(conv.operands[1]).dims;
    const int64_t images = DescOf(conv.operands[0]).dims[0];
    const int64_t depth = filter[1] * filter[2] * filter[3];
    if (filter[2] * filter[3] > 1) {
      const int weight = ValueOf(conv.operands[1]);
      const int flat = AddValue(weight, "_flat", {filter[0], depth, 1, 1});
      plan_.values[flat].view_of = weight;
      conv.operands[1] = ValueId{flat};
    }
    const int64_t width = std::min(images, kWidth);
    const int64_t height = CeilDiv(images, width);
    const int gathered =
        AddValue(input, "_gathered", {1, depth, height, width});
    const int apart =
        AddValue(result, "_gathered", {1, filter[0], height, width});
    plan_.AddMove(NodeKind::kTurn, input, gathered);
    conv.operands[0] = ValueId{gathered};
    conv.results[0] = apart;
    std::get<ConvAttributes>(conv.attributes).stride = {1, 1};
    plan_.AddNode(std::move(conv));
    plan_.AddMove(NodeKind::kTurn, apart, result);
  }

  // A value like `like`, of other dims.
  int AddValue(int like, const char* suffix, const Dims& dims) {
    LoweredValue value = plan_.values[like];
    value.name += suffix;
    value.desc.dims = dims;
    return plan_.AddValue(std::move(value));
  }

  LoweredPlan plan_;
};

}  // namespace

LoweredPlan GatherPixels(LoweredPlan plan) {
  return Gathering(std::move(plan)).Run();
}

}  // namespace kiln
