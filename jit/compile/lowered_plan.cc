#include "jit/compile/lowered_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "jit/plan/op_table.h"
#include "jit/plan/plan_text.h"
#include "jit/plan/rounded_values.h"

namespace kiln {
namespace {

NodeKind KindOf(OpKind op) {
  switch (FindOp(op)->op_class) {
    case OpClass::kConv:
      return NodeKind::kConv2d;
    case OpClass::kConvTranspose:
      return NodeKind::kConvTranspose2d;
    case OpClass::kPool:
      return NodeKind::kPool2d;
    case OpClass::kReduce:
      return NodeKind::kReduce;
    case OpClass::kGroupNorm:
    case OpClass::kSoftmax:
    case OpClass::kBatchNorm:
    case OpClass::kUnary:
    case OpClass::kBinary:
    case OpClass::kCast:
      return NodeKind::kPointwise;
  }
  return NodeKind::kPointwise;
}

class Lowering {
 public:
  explicit Lowering(const CanonicalPlan& plan)
      : plan_(plan), text_(ToText(plan.plan)) {}

  LoweredPlan Run() && {
    const size_t num_inputs = plan_.plan.inputs.size();
    lowered_.num_inputs = static_cast<int>(num_inputs);
    for (size_t i = 0; i < plan_.values.size(); ++i) {
      const bool is_input = i < num_inputs;
      LoweredValue value{
          is_input ? fmt::format("i{}", i) : fmt::format("v{}", i - num_inputs),
          plan_.values[i]};
      if (!is_input) value.desc.dtype = DataType::kF32;
      lowered_.values.push_back(std::move(value));
      current_.push_back(static_cast<int>(i));
    }
    const std::vector<bool> rounded = RoundedValues(plan_.plan, plan_.values);
    for (size_t i = 0; i < plan_.plan.ops.size(); ++i) {
      const int result = static_cast<int>(num_inputs + i);
      LowerOp(plan_.plan.ops[i], result);
      if (rounded[result]) Round(result);
    }
    lowered_.outputs = plan_.plan.outputs;
    for (PlanOutput& output : lowered_.outputs) {
      output.value.index = current_[output.value.index];
    }
    return std::move(lowered_);
  }

 private:
  // Adds what takes the place of `value`, an op's result.
  void Round(int value) {
    current_[value] = lowered_.AddCast(value, plan_.values[value].dtype);
  }

  void LowerOp(const Op& op, int result) {
    std::vector<Operand> operands = op.operands;
    for (Operand& operand : operands) {
      auto* const value = std::get_if<ValueId>(&operand);
      if (value != nullptr) value->index = current_[value->index];
    }
    if (const auto* cast = std::get_if<CastAttributes>(&op.attributes)) {
      lowered_.values[result].desc.dtype = cast->dtype;
    }
    if (op.kind == OpKind::kGroupNorm) {
      const auto& norm = std::get<GroupNormAttributes>(op.attributes);
      const Dims dims = {DimsOf(op)[0] * norm.num_groups};
      AddStatistics(op, result, dims, {"mean", "rstd"}, &operands);
    } else if (op.kind == OpKind::kSoftmax) {
      const auto& softmax = std::get<SoftmaxAttributes>(op.attributes);
      Dims dims = DimsOf(op);
      if (!dims.empty()) dims[softmax.dim] = 1;
      AddStatistics(op, result, dims, {"largest", "sum"}, &operands);
    }
    Node node{KindOf(op.kind), op.kind,  op.attributes,
              operands,        {result}, TextOf(result)};
    if (PoolsImage(op)) ReduceImage(&node);
    if (node.IsConvolution() || IsBehindConvolution(op)) {
      behind_convolution_.insert(result);
    }
    AddNode(std::move(node));
  }

  // Whether `op` is computed of a convolution's result, whose kernel pools.
  bool IsBehindConvolution(const Op& op) const {
    return std::any_of(
        op.operands.begin(), op.operands.end(), [&](const Operand& operand) {
          const int value = ValueOf(operand);
          return value >= 0 && behind_convolution_.count(value) > 0;
        });
  }

  // Whether one window is all of an image.
  bool PoolsImage(const Op& op) const {
    const auto* pool = std::get_if<PoolAttributes>(&op.attributes);
    if (pool == nullptr || pool->divisor_override) return false;
    if (IsBehindConvolution(op)) return false;
    const Dims& dims = DimsOf(op);
    return pool->padding == Pair{0, 0} && pool->dilation == Pair{1, 1} &&
           pool->kernel_size == Pair{dims[dims.size() - 2], dims.back()};
  }

  // Makes a pooling a reduction of rows and columns.
  void ReduceImage(Node* node) const {
    const auto rank = static_cast<int64_t>(DimsOf(*node).size());
    node->kind = NodeKind::kReduce;
    node->op = node->op == OpKind::kMaxPool2d ? OpKind::kAmax : OpKind::kMean;
    node->attributes = ReduceAttributes{{rank - 2, rank - 1}, true};
  }

  // The line of the plan's text that defines a value.
  std::string TextOf(int result) const {
    const std::string begin = "\n" + lowered_.values[result].name + " = ";
    const size_t at = text_.find(begin);
    if (at == std::string::npos) return lowered_.values[result].name;
    return text_.substr(at + 1, text_.find('\n', at + 1) - at - 1);
  }

  // Of the first operand.
  template <typename OpOrNode>
  const Dims& DimsOf(const OpOrNode& op) const {
    return lowered_.values[ValueOf(op.operands[0])].desc.dims;
  }

  // Adds the reduction of the op's input, and its results to `operands`,
  // behind the input.
  void AddStatistics(const Op& op, int result, const Dims& dims,
                     std::array<const char*, 2> names,
                     std::vector<Operand>* operands) {
    Node node{NodeKind::kReduce,   op.kind, op.attributes,
              {operands->front()}, {},      "statistics of " + TextOf(result)};
    for (size_t i = 0; i < names.size(); ++i) {
      const int value = static_cast<int>(lowered_.values.size());
      lowered_.values.push_back(
          {fmt::format("{}_{}", lowered_.values[result].name, names[i]),
           {DataType::kF32, dims}});
      node.results.push_back(value);
      operands->insert(operands->begin() + 1 + i, ValueId{value});
    }
    AddNode(std::move(node));
  }

  void AddNode(Node node) {
    for (const int result : node.results) {
      lowered_.values[result].producer =
          static_cast<int>(lowered_.nodes.size());
    }
    lowered_.nodes.push_back(std::move(node));
  }

  const CanonicalPlan& plan_;
  const std::string text_;
  LoweredPlan lowered_;
  std::vector<int> current_;          // by value of the plan: what readers take
  std::set<int> behind_convolution_;  // values of the plan
};

const char* NameOfMove(NodeKind kind) {
  switch (kind) {
    case NodeKind::kTurn:
      return "turn";
    case NodeKind::kJoin:
      return "join";
    case NodeKind::kMosaic:
      return "mosaic";
    default:
      return "cut";
  }
}

}  // namespace

Dims4 AlignDims(const Dims& dims) {
  Dims4 aligned = {1, 1, 1, 1};
  for (size_t i = 0; i < dims.size(); ++i) {
    aligned[4 - dims.size() + i] = dims[i];
  }
  return aligned;
}

bool Node::Reads(int value) const {
  return std::any_of(
      operands.begin(), operands.end(),
      [&](const Operand& operand) { return ValueOf(operand) == value; });
}

bool Node::ReadsOnly(const std::function<bool(int)>& is_in_set) const {
  return std::all_of(operands.begin(), operands.end(),
                     [&](const Operand& operand) {
                       const int value = ValueOf(operand);
                       return value < 0 || is_in_set(value);
                     });
}

bool Node::IsMove() const {
  return kind == NodeKind::kUnfold || kind == NodeKind::kTurn ||
         kind == NodeKind::kJoin || IsMosaicMove();
}

bool Node::IsMosaicMove() const {
  return kind == NodeKind::kMosaic || kind == NodeKind::kCut;
}

bool Node::IsConvolution() const {
  return kind == NodeKind::kConv2d || kind == NodeKind::kConvTranspose2d;
}

bool Node::IsNorm() const {
  return op == OpKind::kGroupNorm || op == OpKind::kBatchNorm;
}

bool LoweredPlan::AnyIsOutput(const std::vector<int>& of_values) const {
  return std::any_of(outputs.begin(), outputs.end(),
                     [&](const PlanOutput& output) {
                       return std::find(of_values.begin(), of_values.end(),
                                        output.value.index) != of_values.end();
                     });
}

int64_t LoweredPlan::CountUses(int value) const {
  int64_t uses = std::count_if(
      outputs.begin(), outputs.end(),
      [&](const PlanOutput& output) { return output.value.index == value; });
  for (const Node& node : nodes) {
    uses += std::count_if(
        node.operands.begin(), node.operands.end(),
        [&](const Operand& operand) { return ValueOf(operand) == value; });
  }
  return uses;
}

int LoweredPlan::AddValue(LoweredValue value) {
  value.producer = -1;
  values.push_back(std::move(value));
  return static_cast<int>(values.size()) - 1;
}

int LoweredPlan::AddLike(int like, const char* suffix, const Dims& dims) {
  LoweredValue value = values[like];
  value.name += suffix;
  value.desc.dims = dims;
  return AddValue(std::move(value));
}

void LoweredPlan::AddNode(Node node) {
  for (const int result : node.results) {
    values[result].producer = static_cast<int>(nodes.size());
  }
  nodes.push_back(std::move(node));
}

int LoweredPlan::AddCast(int value, DataType type) {
  const std::string name(DataTypeName(type));
  const int rounded =
      AddLike(value, ("_" + name).c_str(), values[value].desc.dims);
  values[rounded].desc.dtype = type;
  AddNode({NodeKind::kPointwise,
           OpKind::kCast,
           CastAttributes{type},
           {ValueId{value}},
           {rounded},
           fmt::format("{} = cast({}, dtype={})", values[rounded].name,
                       values[value].name, name)});
  return rounded;
}

void LoweredPlan::AddMove(NodeKind kind, int from, int to,
                          Attributes attributes) {
  AddNode({kind,
           OpKind::kConv2d,
           std::move(attributes),
           {ValueId{from}},
           {to},
           fmt::format("{} = {}({})", values[to].name, NameOfMove(kind),
                       values[from].name)});
}

LoweredPlan Lower(const CanonicalPlan& plan) { return Lowering(plan).Run(); }

int ValueOf(const Operand& operand) {
  const ValueId* id = std::get_if<ValueId>(&operand);
  return id == nullptr ? -1 : id->index;
}

}  // namespace kiln
