#include "jit/compile/reshape_images.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

namespace kiln {
namespace {

constexpr int64_t kMostColumns = 512;
constexpr int64_t kFewestOfFours = 32;
constexpr size_t kRank = 4;

class Reshaping {
 public:
  explicit Reshaping(LoweredPlan plan) : plan_(std::move(plan)) {}

  LoweredPlan Run() && {
    const Node* const conv = FirstConvolution();
    if (conv == nullptr) return std::move(plan_);
    const TensorDesc& input = DescOf(conv->operands[0]);
    image_ = ImageOf(input.dims);
    const std::optional<Pair> shape = ShapeFor();
    if (input.dtype == DataType::kF32 || image_[1] % 8 == 0 || !shape ||
        !AreAllIndifferent()) {
      return std::move(plan_);
    }
    for (LoweredValue& value : plan_.values) {
      Dims& dims = value.desc.dims;
      if (dims.size() != kRank || ImageOf(dims) != image_) continue;
      dims[2] = (*shape)[0];
      dims[3] = (*shape)[1];
    }
    return std::move(plan_);
  }

 private:
  static Pair ImageOf(const Dims& dims) { return {dims[2], dims[3]}; }
  const TensorDesc& DescOf(const Operand& operand) const {
    return plan_.values[ValueOf(operand)].desc;
  }

  const Node* FirstConvolution() const {
    const auto conv =
        std::find_if(plan_.nodes.begin(), plan_.nodes.end(),
                     [](const Node& node) { return node.IsConvolution(); });
    return conv == plan_.nodes.end() ? nullptr : &*conv;
  }

  // Of the longest rows that tiles can share in many ways, of whole units if
  // there are any; else of halves, if rows have none yet.
  std::optional<Pair> ShapeFor() const {
    const std::optional<Pair> whole = ShapeOf(8, 8);
    if (whole || image_[1] % 4 == 0) return whole;
    return ShapeOf(4, kFewestOfFours);
  }
  // Of rows of a multiple of so many pixels, and no fewer than that.
  std::optional<Pair> ShapeOf(int64_t multiple, int64_t fewest) const {
    const int64_t all = image_[0] * image_[1];
    for (int64_t width = kMostColumns; width >= fewest; width -= multiple) {
      if (all % width == 0) return Pair{all / width, width};
    }
    return std::nullopt;
  }

  bool AreAllIndifferent() const {
    return std::all_of(plan_.nodes.begin(), plan_.nodes.end(),
                       [&](const Node& node) { return IsIndifferent(node); });
  }

  bool IsIndifferent(const Node& node) const {
    switch (node.kind) {
      case NodeKind::kConv2d:
        return ImageOf(DescOf(node.operands[0]).dims) == image_ &&
               HasOneTap(node);
      case NodeKind::kReduce:
        return DescOf(node.operands[0]).dims.size() == kRank &&
               ReducesImages(node);
      case NodeKind::kPointwise:
        return IsOfImages(node);
      default:
        return false;
    }
  }

  bool HasOneTap(const Node& node) const {
    const auto& conv = std::get<ConvAttributes>(node.attributes);
    return ImageOf(DescOf(node.operands[1]).dims) == Pair{1, 1} &&
           conv.stride == Pair{1, 1} && conv.padding == Pair{0, 0};
  }

  // Of whole images. Others of convolutions' results take no lines.
  bool ReducesImages(const Node& node) const {
    const auto* reduce = std::get_if<ReduceAttributes>(&node.attributes);
    if (reduce == nullptr) return false;
    const auto has = [&](int64_t axis) {
      return std::find(reduce->dim.begin(), reduce->dim.end(), axis) !=
             reduce->dim.end();
    };
    return has(2) && has(3);
  }

  // Whether a pointwise op's operands are whole images, and what all pixels of
  // an image have in common; or it has no images.
  bool IsOfImages(const Node& node) const {
    const Dims& result = plan_.values[node.results[0]].desc.dims;
    if (result.size() != kRank) return !IsImageWithoutAxis(result);
    const bool is_norm = node.op == OpKind::kBatchNorm;  // of channels
    for (size_t i = 0; i < (is_norm ? 1 : node.operands.size()); ++i) {
      const int value = ValueOf(node.operands[i]);
      if (value < 0) continue;
      if (!IsEven(plan_.values[value].desc.dims)) return false;
    }
    return true;
  }
  // Whether a tensor of these extents is a whole image, or has the same for all
  // pixels of one.
  bool IsEven(const Dims& dims) const {
    if (dims.size() == kRank && ImageOf(dims) == image_) return true;
    const Dims4 aligned = AlignDims(dims);
    return aligned[2] == 1 && aligned[3] == 1;
  }
  bool IsImageWithoutAxis(const Dims& dims) const {
    return dims.size() > 1 && dims[dims.size() - 2] == image_[0] &&
           dims.back() == image_[1];
  }

  LoweredPlan plan_;
  Pair image_ = {1, 1};
};

}  // namespace

LoweredPlan ReshapeImages(LoweredPlan plan) {
  return Reshaping(std::move(plan)).Run();
}

}  // namespace kiln
