#include "jit/compile/unfold_patches.h"

#include <utility>
#include <variant>

#include "fmt/format.h"

namespace kiln {
namespace {

// Pixels of a filter from which on it is unfolded: of few channels, of which
// an octet has several columns of the filter, and of any number of them.
constexpr int64_t kPixelsOfFew = 64;
constexpr int64_t kPixelsOfAny = 128;
constexpr int64_t kFewChannels = 8;

class Unfolding {
 public:
  explicit Unfolding(LoweredPlan plan) : plan_(std::move(plan)) {}

  LoweredPlan Run() && {
    std::vector<Node> nodes = std::move(plan_.nodes);
    plan_.nodes.clear();
    for (Node& node : nodes) {
      if (IsOfPatches(node)) Unfold(&node);
      Add(std::move(node));
    }
    return std::move(plan_);
  }

 private:
  const TensorDesc& DescOf(const Operand& operand) const {
    return plan_.values[ValueOf(operand)].desc;
  }

  bool IsOfPatches(const Node& node) const {
    if (node.kind != NodeKind::kConv2d) return false;
    const auto& conv = std::get<ConvAttributes>(node.attributes);
    const Dims& filter = DescOf(node.operands[1]).dims;
    const Pair kernel = {filter[2], filter[3]};
    if (conv.groups != 1 || conv.stride != kernel) return false;
    if (conv.padding != Pair{0, 0} || conv.dilation != Pair{1, 1}) return false;
    if (ValueOf(node.operands[1]) >= plan_.num_inputs) return false;
    return kernel[0] * kernel[1] >=
           (filter[1] < kFewChannels ? kPixelsOfFew : kPixelsOfAny);
  }

  // Gives the convolution patches and flat filters for operands.
  void Unfold(Node* conv) {
    const int input = ValueOf(conv->operands[0]);
    const int weight = ValueOf(conv->operands[1]);
    const Dims filter = plan_.values[weight].desc.dims;
    const Dims result = plan_.values[conv->results[0]].desc.dims;
    const int64_t depth = filter[1] * filter[2] * filter[3];

    LoweredValue flat = plan_.values[weight];
    flat.name += "_flat";
    flat.desc.dims = {filter[0], depth, 1, 1};
    flat.view_of = weight;
    LoweredValue patches = plan_.values[input];
    patches.name += "_unfolded";
    patches.desc.dims = {result[0], depth, result[2], result[3]};

    PoolAttributes windows;
    windows.kernel_size = windows.stride = {filter[2], filter[3]};
    windows.padding = {0, 0};
    windows.dilation = {1, 1};
    Node unfold{NodeKind::kUnfold,
                conv->op,
                windows,
                {ValueId{input}},
                {AddValue(std::move(patches))},
                ""};
    unfold.text = fmt::format("{} = unfold({}, kernel_size=[{}, {}])",
                              plan_.values[unfold.results[0]].name,
                              plan_.values[input].name, filter[2], filter[3]);
    conv->operands[0] = ValueId{unfold.results[0]};
    conv->operands[1] = ValueId{AddValue(std::move(flat))};
    std::get<ConvAttributes>(conv->attributes).stride = {1, 1};
    Add(std::move(unfold));
  }

  int AddValue(LoweredValue value) {
    value.producer = -1;
    plan_.values.push_back(std::move(value));
    return static_cast<int>(plan_.values.size()) - 1;
  }

  void Add(Node node) {
    for (const int result : node.results) {
      plan_.values[result].producer = static_cast<int>(plan_.nodes.size());
    }
    plan_.nodes.push_back(std::move(node));
  }

  LoweredPlan plan_;
};

}  // namespace

LoweredPlan UnfoldPatches(LoweredPlan plan) {
  return Unfolding(std::move(plan)).Run();
}

}  // namespace kiln
