#include "jit/compile/part_columns.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "fmt/format.h"
#include "jit/compile/conv_fusion.h"
#include "jit/compile/direct_cost.h"

namespace kiln {
namespace {

// By 60 plans and grades on an H200: three results of 5 x 5 took 0.6 to 0.7 of
// the time, of 9 x 9 0.2 to 0.4, eight of 7 x 7 half of it; three of 3 x 3 as
// long or longer.
constexpr int64_t kMostFilterColumns = 32;  // a thread has all of them
constexpr int64_t kMostResults = 16;
constexpr int64_t kFewestInputs = 16;  // of which chunks are
// Of each element of the input: of fewer the memory takes as long.
constexpr int64_t kFewestOfElement = 32;
// Of each multiprocessor: so that what is saved is more than a launch.
constexpr int64_t kFewestProducts = int64_t{1} << 20;
constexpr int64_t kMostElements = int64_t{1} << 29;  // of all columns

// Cycles of a multiprocessor for 16 channels of 64 pixels, of one tap: of few
// results they are what reading pixels takes, else half of the results. And for
// a number of 32 bits that passes through memory, of 64 pixels.
constexpr double kCyclesOfReading = 24.0;
constexpr double kCyclesPerResult = 0.5;
constexpr double kCyclesPerPassing = 64 * 8 / 13.0;

// Of products with that many results, of so many channels.
double CyclesOfTap(int64_t results, int64_t channels) {
  const double each = std::max(kCyclesOfReading,
                               kCyclesPerResult * static_cast<double>(results));
  return each * static_cast<double>(channels) / 16;
}

class Parting {
 public:
  Parting(LoweredPlan plan, Grade grade, int64_t sm_count)
      : plan_(std::move(plan)), grade_(grade), sm_count_(sm_count) {}

  LoweredPlan Run() && {
    std::vector<Node> nodes = std::move(plan_.nodes);
    plan_.nodes.clear();
    for (Node& node : nodes) {
      const bool is_parted = IsToBeParted(node);
      Node sum = is_parted ? SumOf(&node) : Node{};
      plan_.AddNode(std::move(node));
      if (is_parted) plan_.AddNode(std::move(sum));
    }
    return std::move(plan_);
  }

 private:
  const Dims& DimsOf(const Operand& operand) const {
    return plan_.values[ValueOf(operand)].desc.dims;
  }

  bool IsToBeParted(const Node& node) const {
    if (node.kind != NodeKind::kConv2d || node.wraps_rows) return false;
    if (node.direct && node.direct->As<LinearTile>()) return false;
    if (ValueOf(node.operands[1]) >= plan_.num_inputs) return false;
    const auto& conv = std::get<ConvAttributes>(node.attributes);
    const Dims& filter = DimsOf(node.operands[1]);
    if (conv.groups != 1 || conv.stride[1] != 1) return false;
    if (filter[0] > kMostResults || filter[1] < kFewestInputs) return false;
    if (filter[3] < kFewestColumnsApart || filter[3] > kMostFilterColumns) {
      return false;
    }
    return IsWork(node) && SavesTime(node) &&
           NumElements(ColumnsOf(node)) <= kMostElements;
  }

  bool IsWork(const Node& conv) const {
    const Dims& filter = DimsOf(conv.operands[1]);
    const Dims& result = plan_.values[conv.results[0]].desc.dims;
    const int64_t products =
        NumElements(result) * filter[1] * filter[2] * filter[3] * Parts(conv);
    return filter[0] * filter[2] * filter[3] >= kFewestOfElement &&
           products >= kFewestProducts * sm_count_;
  }

  // Whether fewer products save more than what columns make takes through
  // memory, there and back.
  bool SavesTime(const Node& conv) const {
    const Dims& filter = DimsOf(conv.operands[1]);
    const auto rows = static_cast<double>(filter[2] * Parts(conv));
    const auto columns = static_cast<double>(filter[3]);
    const int64_t results = filter[0] * filter[3];
    const double whole = rows * columns * CyclesOfTap(filter[0], filter[1]);
    const double parted = rows * CyclesOfTap(results, filter[1]);
    return parted + kCyclesPerPassing * static_cast<double>(results) < whole;
  }

  int64_t Parts(const Node& conv) const {
    return ProductsOfParts(plan_.values[ValueOf(conv.operands[0])].desc.dtype,
                           grade_);
  }

  // What columns make of whole rows of the input, halo not included.
  Dims ColumnsOf(const Node& conv) const {
    const Dims& input = DimsOf(conv.operands[0]);
    const Dims& filter = DimsOf(conv.operands[1]);
    const Dims& result = plan_.values[conv.results[0]].desc.dims;
    return {result[0], filter[0] * filter[3], result[2], input[3]};
  }

  // Makes `conv` one of columns; returns what makes its result of theirs.
  Node SumOf(Node* conv) {
    const int weight = ValueOf(conv->operands[1]);
    const Dims filter = DimsOf(conv->operands[1]);
    const int result = conv->results[0];
    const int columns = plan_.AddLike(result, "_columns", ColumnsOf(*conv));
    const int apart = plan_.AddLike(
        weight, "_columns", {filter[0] * filter[3], filter[1], filter[2], 1});
    plan_.values[apart].view_of = weight;
    Node sum{NodeKind::kSumColumns,
             conv->op,
             conv->attributes,
             {ValueId{columns}, conv->operands[2]},
             {result},
             fmt::format("{} = sum_columns({}, {})", plan_.values[result].name,
                         plan_.values[columns].name, filter[3])};
    conv->operands = {conv->operands[0], ValueId{apart}, std::monostate{}};
    conv->results = {columns};
    conv->columns_apart = filter[3];
    conv->direct.reset();
    auto& attributes = std::get<ConvAttributes>(conv->attributes);
    attributes.padding[1] = 0;
    attributes.dilation[1] = 1;
    conv->text = fmt::format("{} = columns of {}", plan_.values[columns].name,
                             conv->text);
    return sum;
  }

  LoweredPlan plan_;
  const Grade grade_;
  const int64_t sm_count_;
};

}  // namespace

LoweredPlan PartColumns(LoweredPlan plan, Grade grade, const Target& target) {
  return Parting(std::move(plan), grade, MultiprocessorsOf(target)).Run();
}

}  // namespace kiln
