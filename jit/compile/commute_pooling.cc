#include "jit/compile/commute_pooling.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "fmt/format.h"
#include "jit/compile/conv_windows.h"
#include "jit/compile/window_geometry.h"

namespace kiln {
namespace {

// Ops of one operand that rise or fall throughout, and make no NaNs: the one
// extreme that is left of a window could miss them.
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
    case OpKind::kCast:
      return true;
    case OpKind::kLeakyRelu: {
      const float slope =
          std::get<LeakyReluAttributes>(node.attributes).negative_slope;
      return slope > 0.0f && std::isfinite(slope);
    }
    default:
      return false;
  }
}

bool IsMonotoneBinary(OpKind op) {
  return op == OpKind::kAdd || op == OpKind::kSub || op == OpKind::kMul ||
         op == OpKind::kMinimum || op == OpKind::kMaximum;
}

// Whether no constant makes a NaN of an infinity.
bool HasPlainConstants(const Node& node) {
  return std::all_of(node.operands.begin(), node.operands.end(),
                     [&](const Operand& operand) {
                       const float* constant = std::get_if<float>(&operand);
                       if (constant == nullptr) return true;
                       return std::isfinite(*constant) &&
                              (node.op != OpKind::kMul || *constant != 0.0f);
                     });
}

// With what is the same throughout a channel as its other operands.
bool IsAffine(const Node& node) {
  return node.IsNorm() || node.op == OpKind::kAdd || node.op == OpKind::kSub ||
         node.op == OpKind::kMul || node.op == OpKind::kNeg;
}

class Commuting {
 public:
  explicit Commuting(const LoweredPlan& plan) : plan_(plan) {}

  LoweredPlan Run() && {
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const Node& node = plan_.nodes[i];
      if (node.kind != NodeKind::kPool2d) continue;
      const std::vector<int> chain = ChainBefore(node);
      if (!chain.empty() && IsOfConvolution(BaseOf(chain))) {
        Move(static_cast<int>(i), chain);
        break;  // one pooling of a convolution is enough
      }
    }
    return std::move(plan_);
  }

 private:
  const Node& NodeAt(int index) const { return plan_.nodes[index]; }
  const Dims& DimsOf(int value) const { return plan_.values[value].desc.dims; }

  // What the first node of a chain normalises.
  int BaseOf(const std::vector<int>& chain) const {
    return ValueOf(NodeAt(chain.front()).operands[0]);
  }

  // Whether a convolution makes a value, by way of pointwise ops.
  bool IsOfConvolution(int value) const {
    const int producer = value < 0 ? -1 : plan_.values[value].producer;
    if (producer < 0) return false;
    const Node& node = NodeAt(producer);
    if (node.kind != NodeKind::kPointwise) return node.IsConvolution();
    return std::any_of(node.operands.begin(), node.operands.end(),
                       [&](const Operand& operand) {
                         return IsOfConvolution(ValueOf(operand));
                       });
  }

  // A mean of zeros that pad it does not follow what is added to it, nor does
  // one of fewer elements than it is divided by.
  bool HasPlainWindows(const Node& pool) const {
    if (!CanPoolTiles(plan_, pool)) return false;
    if (pool.op == OpKind::kMaxPool2d) return true;
    auto windows = std::get<PoolAttributes>(pool.attributes);
    windows.divisor_override.reset();
    return windows.padding == Pair{0, 0} &&
           PoolDivisor(windows, DimsOf(ValueOf(pool.operands[0])),
                       DimsOf(pool.results[0])) ==
               windows.kernel_size[0] * windows.kernel_size[1];
  }

  // Nodes from behind the normalised value to the pooling, in order; none if
  // the pooling cannot be moved.
  std::vector<int> ChainBefore(const Node& pool) const {
    if (!HasPlainWindows(pool)) return {};
    std::vector<int> chain;
    int value = ValueOf(pool.operands[0]);
    while (value >= 0 && plan_.CountUses(value) == 1) {
      const int producer = plan_.values[value].producer;
      if (producer < 0) return {};
      const std::optional<int> operand = PassedOperand(NodeAt(producer));
      if (!operand.has_value()) return {};
      if (!Commutes(pool.op, NodeAt(producer))) return {};
      const int passed = ValueOf(NodeAt(producer).operands[*operand]);
      if (plan_.values[passed].desc.dims != plan_.values[value].desc.dims) {
        return {};  // what it is combined with has more channels or images
      }
      chain.insert(chain.begin(), producer);
      if (NodeAt(producer).op == OpKind::kGroupNorm) return chain;
      value = passed;
    }
    return {};
  }

  // The operand in which a pointwise node is monotone or affine, the others
  // being the same throughout an image's channel.
  std::optional<int> PassedOperand(const Node& node) const {
    if (node.kind != NodeKind::kPointwise) return std::nullopt;
    if (node.IsNorm()) {
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

  // Whether a node that is monotone, or affine, does with this pooling.
  bool Commutes(OpKind pool, const Node& node) const {
    if (!HasPlainConstants(node)) return false;
    return pool == OpKind::kMaxPool2d ? HasKnownSign(node) : IsAffine(node);
  }

  // The operand whose sign decides whether `node` rises, -1 if it is known.
  int SignOperand(const Node& node) const {
    if (node.IsNorm()) {
      return 3;  // the weight
    }
    if (node.op != OpKind::kMul) return -1;
    return *PassedOperand(node) == 0 ? 1 : 0;
  }

  // Where it is a tensor, the convolution's kernel must be able to read it.
  bool HasKnownSign(const Node& node) const {
    const int operand = SignOperand(node);
    if (operand < 0) return true;
    const int value = ValueOf(node.operands[operand]);
    return value < 0 || plan_.values[value].producer < 0;
  }

  bool IsFalling(const Node& node) const {
    if (node.op == OpKind::kNeg) return true;
    if (node.op == OpKind::kSub) return *PassedOperand(node) == 1;
    if (node.op != OpKind::kMul) return false;
    const auto* constant =
        std::get_if<float>(&node.operands[SignOperand(node)]);
    return constant != nullptr && std::signbit(*constant);
  }

  // What the pooling is to know: a sign, and tensors whose signs count too.
  std::vector<Operand> SignsOf(const std::vector<int>& chain) const {
    bool falls = false;
    std::vector<Operand> signs;
    for (const int link : chain) {
      const Node& node = NodeAt(link);
      falls ^= IsFalling(node);
      const int operand = SignOperand(node);
      if (operand < 0 || ValueOf(node.operands[operand]) < 0) continue;
      signs.push_back(node.operands[operand]);
    }
    signs.insert(signs.begin(), falls ? -1.0f : 1.0f);
    return signs;
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
    const int base = BaseOf(chain);
    const Dims dims = plan_.values[old.results[0]].desc.dims;

    const bool is_mean = old.op == OpKind::kAvgPool2d;
    Node pooling = old;
    pooling.operands = is_mean ? std::vector<Operand>{1.0f} : SignsOf(chain);
    pooling.operands.insert(pooling.operands.begin(), ValueId{base});
    int value = AddValue(base, dims);
    pooling.results = {value};
    pooling.text = fmt::format("the {} of windows that decides {}",
                               is_mean ? "mean" : "extreme", old.text);
    std::vector<Node> nodes = {pooling};
    for (const int link : chain) {
      Node copy = NodeAt(link);
      copy.operands[*PassedOperand(NodeAt(link))] = ValueId{value};
      value = link == chain.back() ? old.results[0]
                                   : AddValue(copy.results[0], dims);
      copy.results = {value};
      nodes.push_back(std::move(copy));
    }
    Replace(pool, chain, std::move(nodes));
  }

  int AddValue(int like, const Dims& dims) {
    plan_.values.push_back(
        {plan_.values[like].name + "_pooled", {DataType::kF32, dims}});
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

bool IsEarlyPooling(const Node& node) {
  return node.kind == NodeKind::kPool2d && node.operands.size() > 1;
}

}  // namespace kiln
