#include "jit/compile/mosaic_images.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "jit/compile/conv_choice.h"
#include "jit/compile/conv_cost.h"
#include "jit/compile/conv_problem.h"
#include "jit/compile/cut_later.h"
#include "jit/compile/mosaic_blocks.h"
#include "jit/compile/reshape_images.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

constexpr int64_t kFewestToLay = 8;
// Pixels of an image at most; or of a larger one, and results of that.
constexpr int64_t kMostPixels = 64;
constexpr int64_t kMostOfLarger = 256;
constexpr int64_t kMostResults = 25;
// Of the mosaic: a multiple of eight, so that rows begin where an access of 16
// bytes may, and no more than tiles share in many ways.
constexpr int64_t kImagesAcross = 8;
constexpr int64_t kMosaicWidth = 64;

// By 25 convolutions in three types on an H100: what models say of small images
// is a sixth too much, of others right.
constexpr double kSmallTakeLess = 0.86;
// Of a kernel that moves elements: before the first, and of a multiprocessor
// for each.
constexpr double kCyclesOfMove = 5500.0;
constexpr double kCyclesOfElement = 0.3;

// A convolution along rows.
struct ConvColumns {
  int64_t reach = 0;  // from the filter's first tap to its last
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t output_padding = 0;
  bool transposed = false;

  int64_t ResultSize(int64_t size) const {
    if (!transposed) return (size + 2 * padding - reach - 1) / stride + 1;
    return (size - 1) * stride - 2 * padding + reach + output_padding + 1;
  }
};

// The distance of images in a row, and of their results.
struct Pitches {
  int64_t images = 1;
  int64_t results = 1;
};

// Of images of `size` columns. What an image's results depend on ends before
// the next one, and begins behind the one before.
Pitches PitchesOf(const ConvColumns& conv, int64_t size) {
  const int64_t result = conv.ResultSize(size);
  const int64_t stride = conv.stride;
  if (!conv.transposed) {
    const int64_t read = (result - 1) * stride - conv.padding + conv.reach + 1;
    const int64_t images = RoundUp(std::max(size + conv.padding, read), stride);
    return {images, images / stride};
  }
  const int64_t made = (size - 1) * stride - conv.padding + conv.reach + 1;
  const int64_t images =
      std::max(size, CeilDiv(std::max(result + conv.padding, made), stride));
  return {images, images * stride};
}

class MakingMosaics {
 public:
  MakingMosaics(LoweredPlan plan, const ConvOptions& options, ImageUse use)
      : plan_(std::move(plan)), options_(options), use_(use) {}

  LoweredPlan Run() && {
    std::vector<bool> pays;
    for (const Node& node : plan_.nodes) pays.push_back(IsToBeOne(node));
    std::vector<Node> nodes = std::move(plan_.nodes);
    plan_.nodes.clear();
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (pays[i]) {
        LayOut(std::move(nodes[i]));
      } else {
        plan_.AddNode(std::move(nodes[i]));
      }
    }
    return std::move(plan_);
  }

 private:
  struct Mosaic {
    int64_t across;          // images side by side
    PoolAttributes images;   // as windows of `input`
    PoolAttributes results;  // and of `result`
    Dims input;              // M, C, H, P S
    Dims result;             // of the convolution

    // Of kernel_sources/mosaic.cu.
    bool FitsBlocks() const {
      return std::max(input[2] * input[3], result[2] * result[3]) <=
             kMostOfChannel;
    }
  };

  const Dims& DimsOf(int value) const { return plan_.values[value].desc.dims; }
  const Dims& InputOf(const Node& conv) const {
    return DimsOf(ValueOf(conv.operands[0]));
  }

  bool IsToBeOne(const Node& node) const {
    if (!node.IsConvolution() || node.image || node.wraps_rows) return false;
    if (node.direct) return false;
    const Dims& input = InputOf(node);
    if (input[0] < kFewestToLay) return false;
    return AreSmall(node) && !MayBeJoined(node) && Pays(node);
  }

  // Whether tiles of one image's results would be mostly empty.
  bool AreSmall(const Node& node) const {
    const Dims& input = InputOf(node);
    const Dims& result = DimsOf(node.results[0]);
    const int64_t pixels = input[2] * input[3];
    return pixels <= kMostPixels ||
           (pixels <= kMostOfLarger && result[2] * result[3] <= kMostResults);
  }

  // Side by side (join_images.h).
  bool MayBeJoined(const Node& node) const {
    const TensorDesc& input = plan_.values[ValueOf(node.operands[0])].desc;
    return HasOneTap(plan_, node) && input.dtype != DataType::kF32 &&
           input.dims[2] * input.dims[3] % 4 != 0;
  }

  ConvColumns ColumnsOf(const Node& node) const {
    const auto& conv = std::get<ConvAttributes>(node.attributes);
    const Dims& filter = DimsOf(ValueOf(node.operands[1]));
    return {(filter[3] - 1) * conv.dilation[1], conv.stride[1], conv.padding[1],
            conv.output_padding[1], node.kind == NodeKind::kConvTranspose2d};
  }

  Mosaic MosaicOf(const Node& node) const {
    const Dims& input = InputOf(node);
    const Dims& result = DimsOf(node.results[0]);
    const ConvColumns columns = ColumnsOf(node);
    const Pitches pitches = PitchesOf(columns, input[3]);
    const int64_t fitting = kMosaicWidth / pitches.images;
    const int64_t across =
        std::clamp(fitting / kImagesAcross * kImagesAcross, kImagesAcross,
                   RoundUp(input[0], kImagesAcross));
    const int64_t wholes = CeilDiv(input[0], across);
    const int64_t width = across * pitches.images;
    return {across,
            WindowsOf(input, pitches.images),
            WindowsOf(result, pitches.results),
            {wholes, input[1], input[2], width},
            {wholes, result[1], result[2], columns.ResultSize(width)}};
  }

  // Of convolutions that tensor cores take both ways.
  bool Pays(const Node& node) const {
    const ConvProblem apart = ConvProblemOf(plan_, node);
    const std::optional<double> cycles_apart = CyclesOf(apart);
    if (!cycles_apart) return false;
    const Mosaic mosaic = MosaicOf(node);
    if (!mosaic.FitsBlocks()) return false;
    ConvProblem one = apart;
    one.input = AlignDims(mosaic.input);
    one.output = AlignDims(mosaic.result);
    const std::optional<double> cycles_of_one = CyclesOf(one);
    if (!cycles_of_one) return false;
    return use_ == ImageUse::kWherever ||
           *cycles_of_one + CyclesOfMoves(node, mosaic) <
               kSmallTakeLess * *cycles_apart;
  }

  std::optional<double> CyclesOf(const ConvProblem& problem) const {
    const ConvDemands demands;
    const auto geometry = ChooseConvGeometry(problem, demands, options_);
    if (!geometry) return std::nullopt;
    return ConvCycles(*geometry, demands, options_.target);
  }

  // What reduces or pools results, which the convolution's kernel might have
  // done, reads them once more.
  double CyclesOfMoves(const Node& node, const Mosaic& mosaic) const {
    const int64_t results = NumElements(DimsOf(node.results[0]));
    double cycles = CyclesOfMove(NumElements(mosaic.input)) +
                    CyclesOfMove(NumElements(mosaic.result));
    if (IsReducedBehind(plan_, node)) cycles += CyclesOfMove(2 * results);
    return cycles;
  }
  double CyclesOfMove(int64_t elements) const {
    return kCyclesOfMove + kCyclesOfElement * static_cast<double>(elements) /
                               std::max(options_.target.sm_count, 1);
  }

  void LayOut(Node conv) {
    const Mosaic mosaic = MosaicOf(conv);
    const int input = ValueOf(conv.operands[0]);
    const int result = conv.results[0];
    const int whole = plan_.AddLike(result, "_wide", mosaic.result);
    conv.operands[0] = ValueId{MosaicFor(input, mosaic)};
    conv.results[0] = whole;
    plan_.AddNode(std::move(conv));
    plan_.AddMove(NodeKind::kCut, whole, result, mosaic.results);
    plan_.nodes.back().across = mosaic.across;
  }

  // Convolutions that read the same input at the same distances share it.
  int MosaicFor(int input, const Mosaic& mosaic) {
    const auto [made, is_new] =
        mosaics_.try_emplace({input, mosaic.images.stride});
    if (!is_new) return made->second;
    made->second = plan_.AddLike(input, "_mosaic", mosaic.input);
    plan_.AddMove(NodeKind::kMosaic, input, made->second, mosaic.images);
    plan_.nodes.back().across = mosaic.across;
    return made->second;
  }

  static PoolAttributes WindowsOf(const Dims& image, int64_t pitch) {
    PoolAttributes windows;
    windows.kernel_size = {image[2], image[3]};
    windows.stride = {image[2], pitch};
    windows.padding = {0, 0};
    windows.dilation = {1, 1};
    return windows;
  }

  LoweredPlan plan_;
  const ConvOptions options_;
  const ImageUse use_;
  // By input and pitches.
  std::map<std::pair<int, Pair>, int> mosaics_;
};

}  // namespace

LoweredPlan MosaicImages(LoweredPlan plan, Grade grade, const Target& target,
                         ImageUse use) {
  if (use == ImageUse::kNowhere) return plan;
  return CutLater(MakingMosaics(std::move(plan), {grade, target}, use).Run());
}

}  // namespace kiln
