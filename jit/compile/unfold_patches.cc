#include "jit/compile/unfold_patches.h"

#include <utility>
#include <variant>

#include "fmt/format.h"
#include "jit/compile/window_geometry.h"

namespace kiln {
namespace {

// Pixels of a filter from which on it is unfolded: of few channels, of which
// an octet has several columns of the filter, and of any number of them.
constexpr int64_t kPixelsOfFew = 64;
constexpr int64_t kPixelsOfAny = 128;
constexpr int64_t kFewChannels = 8;
// Of few channels smaller ones are, too, if rows of patches are moved in
// vectors and it pays: in 16 bits, of which filters of one tap are multiplied
// as they lie in memory, and where this many filters for each of their elements
// write so much more than is moved. By nine plans on an H100.
constexpr int64_t kFiltersOfElement = 8;

class Unfolding {
 public:
  Unfolding(LoweredPlan plan, bool takes_small)
      : plan_(std::move(plan)), takes_small_(takes_small) {}

  LoweredPlan Run() && {
    std::vector<Node> nodes = std::move(plan_.nodes);
    plan_.nodes.clear();
    for (Node& node : nodes) {
      if (IsOfPatches(node)) Unfold(&node);
      plan_.AddNode(std::move(node));
    }
    return std::move(plan_);
  }

 private:
  const TensorDesc& DescOf(const Operand& operand) const {
    return plan_.values[ValueOf(operand)].desc;
  }

  bool IsOfPatches(const Node& node) const {
    if (node.kind != NodeKind::kConv2d || node.direct) return false;
    const auto& conv = std::get<ConvAttributes>(node.attributes);
    const Dims& filter = DescOf(node.operands[1]).dims;
    const Pair kernel = {filter[2], filter[3]};
    if (conv.groups != 1 || conv.stride != kernel) return false;
    if (conv.padding != Pair{0, 0} || conv.dilation != Pair{1, 1}) return false;
    if (ValueOf(node.operands[1]) >= plan_.num_inputs) return false;
    const bool has_few = filter[1] < kFewChannels;
    if (kernel[0] * kernel[1] >= (has_few ? kPixelsOfFew : kPixelsOfAny)) {
      return true;
    }
    return takes_small_ && has_few &&
           PaysInVectors(DescOf(node.operands[0]), filter);
  }

  static bool PaysInVectors(const TensorDesc& input, const Dims& filter) {
    if (UnfoldVector({filter[2], filter[3]}, input) == 1) return false;
    const int64_t elements = filter[1] * filter[2] * filter[3];
    return ElementSize(input.dtype) == 2 ||
           filter[0] >= kFiltersOfElement * elements;
  }

  // Gives the convolution patches and flat filters for operands.
  void Unfold(Node* conv) {
    const int input = ValueOf(conv->operands[0]);
    const int weight = ValueOf(conv->operands[1]);
    const Dims filter = plan_.values[weight].desc.dims;
    const Dims result = plan_.values[conv->results[0]].desc.dims;
    const int64_t depth = filter[1] * filter[2] * filter[3];

    const int patches = plan_.AddLike(input, "_unfolded",
                                      {result[0], depth, result[2], result[3]});
    const int flat = plan_.AddLike(weight, "_flat", {filter[0], depth, 1, 1});
    plan_.values[flat].view_of = weight;

    PoolAttributes windows;
    windows.kernel_size = windows.stride = {filter[2], filter[3]};
    windows.padding = {0, 0};
    windows.dilation = {1, 1};
    Node unfold{NodeKind::kUnfold, conv->op,  windows,
                {ValueId{input}},  {patches}, ""};
    unfold.text = fmt::format("{} = unfold({}, kernel_size=[{}, {}])",
                              plan_.values[unfold.results[0]].name,
                              plan_.values[input].name, filter[2], filter[3]);
    conv->operands[0] = ValueId{unfold.results[0]};
    conv->operands[1] = ValueId{flat};
    std::get<ConvAttributes>(conv->attributes).stride = {1, 1};
    plan_.AddNode(std::move(unfold));
  }

  LoweredPlan plan_;
  const bool takes_small_;
};

}  // namespace

LoweredPlan UnfoldPatches(LoweredPlan plan, bool takes_small) {
  return Unfolding(std::move(plan), takes_small).Run();
}

}  // namespace kiln
