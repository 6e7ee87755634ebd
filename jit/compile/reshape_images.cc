#include "jit/compile/reshape_images.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "jit/compile/conv_cost.h"
#include "jit/compile/conv_demands.h"
#include "jit/compile/conv_problem.h"

namespace kiln {
namespace {

constexpr int64_t kMostColumns = 512;
constexpr int64_t kFewestOfFours = 32;
constexpr size_t kRank = 4;

Pair ImageOf(const Dims& dims) { return {dims[2], dims[3]}; }

// Of the longest rows of a multiple of so many pixels, and no fewer than
// `fewest`, that tiles can share in many ways.
std::optional<Pair> ShapeOf(const Pair& image, int64_t multiple,
                            int64_t fewest) {
  const int64_t all = image[0] * image[1];
  for (int64_t width = kMostColumns; width >= fewest; width -= multiple) {
    if (all % width == 0) return Pair{all / width, width};
  }
  return std::nullopt;
}

// Whether a pointwise op's operands have the extents of `domain`, or the same
// for all pixels of an image.
bool ReadsWholeImages(const LoweredPlan& plan, const Node& node,
                      const Dims4& domain) {
  const bool is_norm =  // of which the others are of channels
      node.op == OpKind::kBatchNorm || node.op == OpKind::kGroupNorm;
  for (size_t i = 0; i < (is_norm ? 1 : node.operands.size()); ++i) {
    const int value = ValueOf(node.operands[i]);
    if (value < 0) continue;
    const Dims4 dims = AlignDims(plan.values[value].desc.dims);
    if (dims != domain && (dims[2] != 1 || dims[3] != 1)) return false;
  }
  return true;
}

// Of whole images. Others of convolutions' results take no lines.
bool ReducesImages(const Node& node) {
  const auto* reduce = std::get_if<ReduceAttributes>(&node.attributes);
  if (reduce == nullptr) return false;
  const auto has = [&](int64_t axis) {
    return std::find(reduce->dim.begin(), reduce->dim.end(), axis) !=
           reduce->dim.end();
  };
  return has(2) && has(3);
}

// Whether `node`, behind a convolution with results of extents `domain`, would
// be the same with the pixels of its images in other rows, if it shared the
// kernel.
bool IsIndifferent(const LoweredPlan& plan, const Node& node,
                   const Dims4& domain) {
  switch (node.kind) {
    case NodeKind::kPointwise:
      return plan.values[node.results[0]].desc.dims.size() == kRank &&
             ReadsWholeImages(plan, node, domain);
    case NodeKind::kReduce:
      return ReducesImages(node);
    case NodeKind::kPool2d:
      return false;
    default:
      return true;
  }
}

bool AreUsersIndifferent(const LoweredPlan& plan, const Node& conv) {
  const Dims4 domain = AlignDims(plan.values[conv.results[0]].desc.dims);
  const std::vector<const Node*> behind = NodesBehind(plan, conv);
  return std::all_of(behind.begin(), behind.end(), [&](const Node* node) {
    return IsIndifferent(plan, *node, domain);
  });
}

// Whether no op of the kernel that works on the convolution's elements can
// tell.
bool CannotTell(const LoweredPlan& plan, const Kernel& kernel) {
  const Dims4 domain = AlignDims(kernel.group.domain);
  const std::vector<int> nodes = kernel.group.Nodes();
  return std::all_of(nodes.begin(), nodes.end(), [&](int index) {
    const Node& node = plan.nodes[index];
    return node.kind != NodeKind::kPointwise ||
           AlignDims(plan.values[node.results[0]].desc.dims) != domain ||
           ReadsWholeImages(plan, node, domain);
  });
}

// Whether the kernel of a convolution that takes its images otherwise than they
// are does no more than can be done so.
bool Suits(const LoweredPlan& plan, const Kernel& kernel) {
  if (!SplitsImages(plan, plan.nodes[kernel.group.anchor])) {
    return !kernel.conv || CannotTell(plan, kernel);
  }
  return kernel.conv && CannotTell(plan, kernel) &&
         !VariesByImage(plan, kernel.group.epilogue);
}

double FewestCycles(const ConvProblem& problem, const Kernel& kernel,
                    const ConvOptions& options) {
  const std::optional<ConvGeometry> g =
      ChooseConvGeometry(problem, kernel.demands, options);
  if (!g) return std::numeric_limits<double>::infinity();
  return ConvCycles(*g, kernel.demands, options.target);
}

// How many cycles more a convolution would take whose images are as they are.
// Of f32, whose pixels nobody takes as they lie, tiles of several rows may suit
// better; elsewhere none.
double CyclesSaved(const LoweredPlan& plan, const Kernel& kernel,
                   const ConvOptions& options) {
  if (!kernel.conv || kernel.conv->problem.input_type != DataType::kF32) {
    return 0.0;
  }
  Node node = plan.nodes[kernel.group.anchor];
  const ConvProblem in_rows = ConvProblemOf(plan, node);
  node.image.reset();
  const ConvProblem as_it_is = ConvProblemOf(plan, node);
  return FewestCycles(as_it_is, kernel, options) -
         FewestCycles(in_rows, kernel, options);
}

// Of one tap.
bool MayTakeLines(const ConvProblem& problem) {
  return problem.input_type != DataType::kF32 || MayLayLines(problem);
}

}  // namespace

std::vector<const Node*> NodesBehind(const LoweredPlan& plan,
                                     const Node& conv) {
  std::set<int> reached = {conv.results.begin(), conv.results.end()};
  std::vector<const Node*> behind;
  for (const Node& node : plan.nodes) {
    if (std::none_of(reached.begin(), reached.end(),
                     [&](int value) { return node.Reads(value); })) {
      continue;
    }
    behind.push_back(&node);
    if (node.kind != NodeKind::kPointwise) continue;
    reached.insert(node.results.begin(), node.results.end());
  }
  return behind;
}

bool IsReducedBehind(const LoweredPlan& plan, const Node& conv) {
  const std::vector<const Node*> behind = NodesBehind(plan, conv);
  return std::any_of(behind.begin(), behind.end(), [](const Node* node) {
    return node->kind == NodeKind::kReduce || node->kind == NodeKind::kPool2d;
  });
}

bool HasOneTap(const LoweredPlan& plan, const Node& node) {
  if (node.kind != NodeKind::kConv2d) return false;
  const auto& conv = std::get<ConvAttributes>(node.attributes);
  const int weight = ValueOf(node.operands[1]);
  return ImageOf(plan.values[weight].desc.dims) == Pair{1, 1} &&
         conv.stride == Pair{1, 1} && conv.padding == Pair{0, 0};
}

bool IsLinearLayer(const LoweredPlan& plan, const Node& node) {
  if (node.kind != NodeKind::kConv2d) return false;
  const auto& conv = std::get<ConvAttributes>(node.attributes);
  const auto image_of = [&](size_t operand) {
    return ImageOf(plan.values[ValueOf(node.operands[operand])].desc.dims);
  };
  return conv.groups == 1 && conv.padding == Pair{0, 0} &&
         conv.dilation == Pair{1, 1} && image_of(0) == image_of(1);
}

bool CanReshape(const LoweredPlan& plan, const Node& node) {
  return HasOneTap(plan, node) && !node.direct &&
         MayTakeLines(ConvProblemOf(plan, node)) &&
         AreUsersIndifferent(plan, node);
}

bool AreImagesSuited(const Schedule& schedule) {
  const LoweredPlan& plan = schedule.lowered;
  return std::all_of(schedule.kernels.begin(), schedule.kernels.end(),
                     [&](const Kernel& kernel) {
                       return kernel.group.anchor < 0 || !kernel.computes() ||
                              !plan.nodes[kernel.group.anchor].image ||
                              Suits(plan, kernel);
                     });
}

std::optional<Pair> RowsFor(const Pair& image) {
  if (image[1] % 8 == 0) return std::nullopt;
  const std::optional<Pair> whole = ShapeOf(image, 8, 8);
  if (whole || image[1] % 4 == 0) return whole;
  return ShapeOf(image, 4, kFewestOfFours);
}

std::set<int> UnsuitedImages(const Schedule& schedule,
                             const ConvOptions& options) {
  const LoweredPlan& plan = schedule.lowered;
  std::set<int> unsuited;
  // By input, whose convolutions may take the same lines.
  std::map<int, double> saved;
  std::map<int, std::set<int>> results;
  for (const Kernel& kernel : schedule.kernels) {
    if (kernel.group.anchor < 0 || !kernel.computes()) continue;
    const Node& node = plan.nodes[kernel.group.anchor];
    if (!node.image) continue;
    if (!Suits(plan, kernel)) unsuited.insert(node.results[0]);
    const int input = ValueOf(node.operands[0]);
    saved[input] += CyclesSaved(plan, kernel, options);
    results[input].insert(node.results[0]);
  }
  for (const auto& [input, cycles] : saved) {
    if (cycles < 0.0) unsuited.merge(results[input]);
  }
  return unsuited;
}

LoweredPlan ReshapeImages(LoweredPlan plan, const std::set<int>& apart) {
  for (Node& node : plan.nodes) {
    if (node.image || !node.IsConvolution()) continue;
    if (apart.count(node.results[0]) > 0) continue;
    const TensorDesc& input = plan.values[ValueOf(node.operands[0])].desc;
    const std::optional<Pair> shape = RowsFor(ImageOf(input.dims));
    if (shape && CanReshape(plan, node)) node.image = shape;
  }
  return plan;
}

}  // namespace kiln
