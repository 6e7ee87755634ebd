#include "jit/compile/commute_pooling.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "fmt/format.h"

namespace kiln {
namespace {

// Ops of one operand that rise or fall throughout.
bool IsMonotoneUnary(const Node& node) {
  switch (node.op) {
    case OpKind::kRelu:
    case OpKind::kTanh:
    case OpKind::kSigmoid:
    case OpKind::kHardsigmoid:
    case OpKind::kHardtanh:
    case OpKind::kClamp:
    case OpKind::kNeg:
    case OpKind::kExp:
    case OpKind::kSqrt:
    case OpKind::kCast:
      return true;
    case OpKind::kLeakyRelu:
      return std::get<LeakyReluAttributes>(node.attributes).negative_slope >=
             0.0f;
    default:
      return false;
  }
}

bool IsMonotoneBinary(OpKind op) {
  return op == OpKind::kAdd || op == OpKind::kSub || op == OpKind::kMul ||
         op == OpKind::kMinimum || op == OpKind::kMaximum;
}

bool HasPlainWindows(const PoolAttributes& pool) {
  return pool.kernel_size == pool.stride && pool.padding == Pair{0, 0} &&
         pool.dilation == Pair{1, 1} && !pool.ceil_mode;
}

class Commuting {
 public:
  explicit Commuting(const LoweredPlan& plan) : plan_(plan) {}

  LoweredPlan Run() && {
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const Node& node = plan_.nodes[i];
      if (node.op != OpKind::kMaxPool2d) continue;
      const std::vector<int> chain = ChainBefore(node);
      if (!chain.empty()) {
        Move(static_cast<int>(i), chain);
        break;  // one pooling of a convolution is enough
      }
    }
    return std::move(plan_);
  }

 private:
  const Node& NodeAt(int index) const { return plan_.nodes[index]; }

  // Nodes from behind the normalised value to the pooling, in order; none if
  // the pooling cannot be moved.
  std::vector<int> ChainBefore(const Node& pool) const {
    if (!HasPlainWindows(std::get<PoolAttributes>(pool.attributes))) return {};
    std::vector<int> chain;
    int value = ValueOf(pool.operands[0]);
    while (value >= 0 && CountUses(value) == 1) {
      const int producer = plan_.values[value].producer;
      if (producer < 0) return {};
      const std::optional<int> operand = MonotoneOperand(NodeAt(producer));
      if (!operand.has_value()) return {};
      chain.insert(chain.begin(), producer);
      if (NodeAt(producer).op == OpKind::kGroupNorm) return chain;
      value = ValueOf(NodeAt(producer).operands[*operand]);
    }
    return {};
  }

  int CountUses(int value) const {
    int uses = 0;
    for (const Node& node : plan_.nodes) {
      for (const Operand& operand : node.operands) {
        uses += ValueOf(operand) == value ? 1 : 0;
      }
    }
    for (const PlanOutput& output : plan_.outputs) {
      uses += output.value.index == value ? 1 : 0;
    }
    return uses;
  }

  // The operand in which a pointwise node is monotone, the others being the
  // same throughout an image's channel.
  std::optional<int> MonotoneOperand(const Node& node) const {
    if (node.kind != NodeKind::kPointwise) return std::nullopt;
    if (node.op == OpKind::kGroupNorm || node.op == OpKind::kBatchNorm) {
      return 0;
    }
    if (IsMonotoneUnary(node)) return 0;
    if (!IsMonotoneBinary(node.op)) return std::nullopt;
    const bool first = IsSteady(node, 1) && !IsSteady(node, 0);
    const bool second = IsSteady(node, 0) && !IsSteady(node, 1);
    if (first) return 0;
    if (second) return 1;
    return std::nullopt;
  }

  // Whether an operand is the same at all pixels of a channel.
  bool IsSteady(const Node& node, size_t operand) const {
    const int value = ValueOf(node.operands[operand]);
    if (value < 0) return true;
    const Dims4 dims = AlignDims(plan_.values[value].desc.dims);
    return dims[2] == 1 && dims[3] == 1;
  }

  void Move(int pool, const std::vector<int>& chain) {
    const Node old = NodeAt(pool);
    const int base = ValueOf(NodeAt(chain.front()).operands[0]);
    const Dims dims = plan_.values[old.results[0]].desc.dims;

    Node extremes = old;
    extremes.operands = {ValueId{base}};
    extremes.results = {AddValue(base, "largest", dims),
                        AddValue(base, "smallest", dims)};
    extremes.text =
        fmt::format("largest and smallest of windows before {}", old.text);
    std::vector<Node> nodes = {extremes};
    Node larger = old;
    larger.kind = NodeKind::kPointwise;
    larger.op = OpKind::kMaximum;
    larger.attributes = std::monostate{};
    larger.operands.clear();
    const char* const names[] = {"largest", "smallest"};
    for (size_t i = 0; i < 2; ++i) {
      int value = extremes.results[i];
      for (const int link : chain) {
        Node copy = NodeAt(link);
        copy.operands[*MonotoneOperand(NodeAt(link))] = ValueId{value};
        value = AddValue(copy.results[0], names[i], dims);
        copy.results = {value};
        nodes.push_back(std::move(copy));
      }
      larger.operands.push_back(ValueId{value});
    }
    nodes.push_back(std::move(larger));
    Replace(pool, chain, std::move(nodes));
  }

  int AddValue(int like, const char* name, const Dims& dims) {
    plan_.values.push_back({fmt::format("{}_{}", plan_.values[like].name, name),
                            {DataType::kF32, dims}});
    return static_cast<int>(plan_.values.size()) - 1;
  }

  // Puts `nodes` in the place of the pooling and takes the chain away.
  void Replace(int pool, const std::vector<int>& chain,
               std::vector<Node> nodes) {
    const std::set<int> gone(chain.begin(), chain.end());
    std::vector<Node> kept;
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const int index = static_cast<int>(i);
      if (index == pool) {
        kept.insert(kept.end(), nodes.begin(), nodes.end());
      } else if (gone.count(index) == 0) {
        kept.push_back(std::move(plan_.nodes[i]));
      }
    }
    plan_.nodes = std::move(kept);
    for (LoweredValue& value : plan_.values) value.producer = -1;
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      for (const int result : plan_.nodes[i].results) {
        plan_.values[result].producer = static_cast<int>(i);
      }
    }
  }

  LoweredPlan plan_;
};

}  // namespace

LoweredPlan CommutePooling(const LoweredPlan& plan) {
  return Commuting(plan).Run();
}

bool IsExtremes(const Node& node) {
  return node.kind == NodeKind::kPool2d && node.results.size() == 2;
}

}  // namespace kiln
