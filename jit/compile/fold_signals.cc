#include "jit/compile/fold_signals.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

namespace kiln {
namespace {

constexpr size_t kRank = 4;
// Of an image: strips of fewer rows are short, and longer rows gain nothing.
constexpr int64_t kFewestRows = 8;
constexpr int64_t kMostColumns = 256;
constexpr int64_t kFewestColumns = 64;

// Rows that begin where an access may, or two pixels side by side.
int64_t RowsFor(int64_t length) {
  for (const int64_t multiple : {8, 4, 2}) {
    for (int64_t width = kMostColumns; width >= kFewestColumns;
         width -= multiple) {
      if (length % width == 0) return length / width;
    }
  }
  return 1;
}

class Folding {
 public:
  explicit Folding(LoweredPlan plan) : plan_(std::move(plan)) {}

  LoweredPlan Run() && {
    const auto conv =
        std::find_if(plan_.nodes.begin(), plan_.nodes.end(),
                     [](const Node& node) { return node.IsConvolution(); });
    if (conv == plan_.nodes.end()) return std::move(plan_);
    length_ = DimsOf(conv->results[0])[3];
    const int64_t rows = RowsFor(length_);
    if (rows >= kFewestRows && AreAllIndifferent()) Fold(rows);
    return std::move(plan_);
  }

 private:
  const Dims& DimsOf(int value) const { return plan_.values[value].desc.dims; }

  // Whether the value is of signals; it then counts as such.
  bool IsSignal(int value) {
    const Dims& dims = DimsOf(value);
    if (dims.size() != kRank || dims[2] != 1 || dims[3] != length_) {
      return false;
    }
    signals_.insert(value);
    return true;
  }

  bool AreAllIndifferent() {
    const bool are_nodes =
        std::all_of(plan_.nodes.begin(), plan_.nodes.end(),
                    [&](const Node& node) { return IsIndifferent(node); });
    return are_nodes &&
           std::none_of(weights_.begin(), weights_.end(),
                        [&](int weight) { return signals_.count(weight) > 0; });
  }

  bool IsIndifferent(const Node& node) {
    switch (node.kind) {
      case NodeKind::kConv2d:
        return IsConvolutionOfSignal(node);
      case NodeKind::kReduce:
        return IsOfWholeSignals(node);
      case NodeKind::kPointwise:
        return IsOfSignals(node);
      default:
        return false;
    }
  }

  bool IsConvolutionOfSignal(const Node& node) {
    // Others that read operands as they lie take rows for rows of an image.
    if (node.direct && node.direct->As<OneTapTile>() == nullptr) return false;
    const auto& conv = std::get<ConvAttributes>(node.attributes);
    const int weight = ValueOf(node.operands[1]);
    const bool is_depthwise = conv.groups > 1 && DimsOf(weight)[1] == 1;
    if (DimsOf(weight)[2] != 1 || is_depthwise) return false;
    if (conv.padding[0] != 0 || conv.stride != Pair{1, 1}) return false;
    weights_.insert(weight);
    return IsSignal(ValueOf(node.operands[0])) && IsSignal(node.results[0]);
  }

  bool IsOfWholeSignals(const Node& node) {
    if (!IsSignal(ValueOf(node.operands[0]))) return false;
    const auto* reduce = std::get_if<ReduceAttributes>(&node.attributes);
    if (reduce == nullptr) return node.op == OpKind::kGroupNorm;
    const auto has = [&](int64_t axis) {
      return std::find(reduce->dim.begin(), reduce->dim.end(), axis) !=
             reduce->dim.end();
    };
    return has(2) && has(3);
  }

  // And of what all places of a signal have in common; or of the latter alone.
  bool IsOfSignals(const Node& node) {
    const bool is_norm =  // what else it reads is of channels
        node.op == OpKind::kBatchNorm || node.op == OpKind::kGroupNorm;
    const size_t count = is_norm ? 1 : node.operands.size();
    for (size_t i = 0; i < count; ++i) {
      const int value = ValueOf(node.operands[i]);
      if (value >= 0 && !IsSignal(value) && !IsCommon(value)) return false;
    }
    return IsSignal(node.results[0]) || IsCommon(node.results[0]);
  }
  bool IsCommon(int value) const {
    const Dims& dims = DimsOf(value);
    if (NumElements(dims) == 1) return true;
    return dims.size() >= 2 && dims.back() == 1 && dims[dims.size() - 2] == 1;
  }

  void Fold(int64_t rows) {
    for (const int value : signals_) {
      Dims& dims = plan_.values[value].desc.dims;
      dims[2] = rows;
      dims[3] = length_ / rows;
    }
    for (Node& node : plan_.nodes) {
      if (!node.IsConvolution()) continue;
      node.wraps_rows = DimsOf(ValueOf(node.operands[1]))[3] > 1;
    }
  }

  LoweredPlan plan_;
  int64_t length_ = 0;
  std::set<int> signals_, weights_;
};

}  // namespace

LoweredPlan FoldSignals(LoweredPlan plan) {
  return Folding(std::move(plan)).Run();
}

}  // namespace kiln
