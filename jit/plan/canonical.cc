#include "jit/plan/canonical.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "jit/plan/canonical_fields.h"
#include "jit/plan/named_product.h"
#include "jit/plan/validate.h"

namespace kiln {
namespace {

// `dim` counted from the front. Dimension 0 of a scalar is allowed.
int64_t FromFront(int64_t dim, size_t rank) {
  return dim < 0 ? dim + static_cast<int64_t>(std::max<size_t>(rank, 1)) : dim;
}

// Sorted, each in [0, rank); all of them if none is named.
std::vector<int64_t> AllFromFront(std::vector<int64_t> dim, size_t rank) {
  for (int64_t& entry : dim) entry = FromFront(entry, rank);
  std::sort(dim.begin(), dim.end());
  if (dim.empty() || rank == 0) {
    dim.resize(rank);
    std::iota(dim.begin(), dim.end(), 0);
  }
  return dim;
}

// The attributes of a valid op with one spelling per meaning.
Attributes CanonicalAttributes(const Op& op, size_t input_rank) {
  Attributes attributes = op.attributes;
  if (auto* reduce = std::get_if<ReduceAttributes>(&attributes)) {
    reduce->dim = AllFromFront(std::move(reduce->dim), input_rank);
  } else if (auto* softmax = std::get_if<SoftmaxAttributes>(&attributes)) {
    softmax->dim = FromFront(softmax->dim, input_rank);
  } else if (op.kind == OpKind::kHardtanh) {
    auto& bounds = std::get<ClampAttributes>(attributes);
    bounds.min = bounds.min.value_or(-1.0f);
    bounds.max = bounds.max.value_or(1.0f);
  }
  return attributes;
}

// Pooling whose windows are single elements.
bool IsIdentityPool(const Op& op) {
  const auto* pool = std::get_if<PoolAttributes>(&op.attributes);
  constexpr Pair kOnes = {1, 1};
  constexpr Pair kZeros = {0, 0};
  return pool != nullptr && pool->kernel_size == kOnes &&
         pool->stride == kOnes && pool->padding == kZeros &&
         pool->divisor_override.value_or(1) == 1;
}

// Finds for every value of a valid plan the first that computes the same.
class Merger {
 public:
  Merger(const Plan& plan, const std::vector<TensorDesc>& values)
      : plan_(plan), values_(values), num_readers_(values.size()) {
    for (const Op& op : plan.ops) {
      for (const Operand& operand : op.operands) {
        const auto* value = std::get_if<ValueId>(&operand);
        if (value != nullptr) ++num_readers_[value->index];
      }
    }
    for (const PlanInput& input : plan.inputs) {
      representative_.push_back(static_cast<int>(representative_.size()));
      exact_.push_back(input.desc.dtype);
    }
    for (const Op& op : plan.ops) Add(op);
  }

  // Index of the value that stands for value `index`.
  int Representative(int index) const { return representative_[index]; }

  // Op that defines value `index`, with canonical attributes, its operands
  // replaced by their representatives.
  const Op& OpOf(int index) const { return ops_[index - plan_.inputs.size()]; }

 private:
  void Add(const Op& original) {
    const int self = static_cast<int>(representative_.size());
    ops_.push_back(Rewrite(original));
    NameProduct();
    const Op& op = ops_.back();
    const auto* cast = std::get_if<CastAttributes>(&op.attributes);
    exact_.push_back(cast != nullptr ? std::optional(cast->dtype)
                                     : std::nullopt);
    if (IsNoOp(op)) {
      representative_.push_back(std::get<ValueId>(op.operands[0]).index);
      return;
    }
    representative_.push_back(
        known_.emplace(CanonicalOpFields(op, ""), self).first->second);
  }

  Op Rewrite(const Op& original) const {
    Op op = original;
    for (Operand& operand : op.operands) {
      auto* const value = std::get_if<ValueId>(&operand);
      if (value != nullptr) value->index = representative_[value->index];
    }
    const auto* input = std::get_if<ValueId>(&original.operands[0]);
    const size_t rank =
        input == nullptr ? 0 : values_[input->index].dims.size();
    op.attributes = CanonicalAttributes(original, rank);
    return op;
  }

  // Factors that somebody else reads, too, may be rounded for that
  // (rounded_values.h), so they must be read here alone.
  void NameProduct() {
    const auto op_of = [&](ValueId value) -> const Op* {
      const int op = value.index - static_cast<int>(plan_.inputs.size());
      return op >= 0 && num_readers_[value.index] == 1 ? &ops_[op] : nullptr;
    };
    const auto named = NamedProduct(ops_.back(), op_of);
    if (named) ops_.back() = *named;
  }

  bool IsNoOp(const Op& op) const {
    if (const auto* cast = std::get_if<CastAttributes>(&op.attributes)) {
      return exact_[std::get<ValueId>(op.operands[0]).index] == cast->dtype;
    }
    return IsIdentityPool(op);
  }

  const Plan& plan_;
  const std::vector<TensorDesc>& values_;
  std::vector<int> num_readers_;     // by value: ops of the plan as it came
  std::vector<int> representative_;  // by value
  // By value: the type in which it is already rounded, if any. Equal nominal
  // types are not enough: the sum of two f16 inputs is an f32 until it is cast.
  std::vector<std::optional<DataType>> exact_;
  std::vector<Op> ops_;               // by op
  std::map<std::string, int> known_;  // op's fields to the value it defines
};

// Numbers the values that outputs need, depth first.
class Numbering {
 public:
  Numbering(const Plan& plan, const Merger& merger)
      : merger_(merger),
        input_count_(static_cast<int>(plan.inputs.size())),
        number_(plan.inputs.size() + plan.ops.size(), -1) {
    for (const PlanOutput& output : plan.outputs) {
      Visit(merger.Representative(output.value.index));
    }
  }

  const std::vector<int>& inputs() const { return inputs_; }
  const std::vector<int>& ops() const { return ops_; }

  // Canonical input of the client's input `index`; -1: unused.
  int InputNumber(int index) const { return number_[index]; }

  // Canonical value of the representative `index`.
  ValueId Value(int index) const {
    const int number = number_[index];
    return ValueId{index < input_count_
                       ? number
                       : static_cast<int>(inputs_.size()) + number};
  }

 private:
  // The depth is at most the number of ops, which is bounded.
  void Visit(int index) {
    if (number_[index] >= 0) return;
    if (index < input_count_) {
      number_[index] = static_cast<int>(inputs_.size());
      inputs_.push_back(index);
      return;
    }
    for (const Operand& operand : merger_.OpOf(index).operands) {
      const auto* value = std::get_if<ValueId>(&operand);
      if (value != nullptr) Visit(value->index);
    }
    number_[index] = static_cast<int>(ops_.size());
    ops_.push_back(index);
  }

  const Merger& merger_;
  int input_count_;
  std::vector<int> number_;  // by value, within inputs or ops
  std::vector<int> inputs_;  // values, in canonical order
  std::vector<int> ops_;
};

Op RenumberedOp(const Op& merged, const Numbering& numbering, size_t number) {
  Op op = merged;
  op.name = fmt::format("v{}", number);
  for (Operand& operand : op.operands) {
    auto* const value = std::get_if<ValueId>(&operand);
    if (value != nullptr) *value = numbering.Value(value->index);
  }
  return op;
}

}  // namespace

absl::StatusOr<CanonicalPlan> Canonicalize(const Plan& plan) {
  const absl::StatusOr<std::vector<TensorDesc>> values = ValidatePlan(plan);
  if (!values.ok()) return values.status();
  const Merger merger(plan, *values);
  const Numbering numbering(plan, merger);

  CanonicalPlan result;
  result.plan.grade = plan.grade;
  for (int index : numbering.inputs()) {
    PlanInput input = plan.inputs[index];
    input.name = fmt::format("i{}", result.plan.inputs.size());
    result.plan.inputs.push_back(std::move(input));
    result.values.push_back((*values)[index]);
  }
  for (int index : numbering.ops()) {
    result.plan.ops.push_back(
        RenumberedOp(merger.OpOf(index), numbering, result.plan.ops.size()));
    result.values.push_back((*values)[index]);
  }
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    result.slot_of_input.push_back(numbering.InputNumber(static_cast<int>(i)));
  }
  for (const PlanOutput& output : plan.outputs) {
    const int value = merger.Representative(output.value.index);
    result.slot_of_output.push_back(static_cast<int>(
        result.plan.inputs.size() + result.plan.outputs.size()));
    result.plan.outputs.push_back({numbering.Value(value), output.dtype});
  }
  return result;
}

std::string CanonicalText(const CanonicalPlan& canonical) {
  const Plan& plan = canonical.plan;
  std::string out = fmt::format("grade={}\n", GradeName(plan.grade));
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const PlanInput& input = plan.inputs[i];
    out += fmt::format(
        "input{0}.dtype={1}\ninput{0}.dims={2}\n"
        "input{0}.role={3}\n",
        i, DataTypeName(input.desc.dtype), fmt::join(input.desc.dims, ","),
        InputRoleName(input.role));
  }
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    out += CanonicalOpFields(plan.ops[i], fmt::format("op{}.", i));
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    out += fmt::format("output{0}.value={1}\noutput{0}.dtype={2}\n", i,
                       plan.outputs[i].value.index,
                       DataTypeName(plan.outputs[i].dtype));
  }
  return out;
}

}  // namespace kiln
