#include "tests/jit/plan/plan_mutator.h"

#include <bit>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "jit/plan/attribute_fields.h"
#include "jit/plan/op_table.h"

namespace kiln {
namespace {

// Any element of a vector, or nullptr if there is none.
template <typename T>
T* AnyOf(TestRandom* random, std::vector<T>* all) {
  if (all->empty()) return nullptr;
  return &(*all)[random->Int(0, static_cast<int64_t>(all->size()) - 1)];
}

std::string HostileName(TestRandom* random) {
  if (random->OneIn(3)) return std::string(random->Int(60, 70), 'x');
  std::string name;
  for (int64_t i = random->Int(0, 8); i > 0; --i) {
    name += static_cast<char>(random->Int(0, 255));
  }
  return name;
}

// One overload per type of attribute field.
struct FieldMutator {
  TestRandom* random;

  void operator()(bool* value) const { *value = !*value; }
  void operator()(int64_t* value) const { *value = HostileInt(random); }
  void operator()(float* value) const {
    *value = std::bit_cast<float>(static_cast<uint32_t>(random->Bits()));
  }
  void operator()(Pair* value) const {
    (*value)[random->Int(0, 1)] = HostileInt(random);
  }
  void operator()(Dims* value) const {
    value->resize(random->Int(0, 6), HostileInt(random));
    if (!value->empty()) value->back() = HostileInt(random);
  }
  void operator()(DataType* value) const {
    *value = static_cast<DataType>(random->Int(0, 255));
  }
  void operator()(GeluApproximate* value) const {
    *value = static_cast<GeluApproximate>(random->Int(0, 255));
  }
  template <typename T>
  void operator()(std::optional<T>* value) const {
    if (random->OneIn(3)) {
      value->reset();
    } else {
      (*this)(&value->emplace());
    }
  }
};

void MutateAttributes(TestRandom* random, Op* op) {
  if (random->OneIn(5)) {
    const auto ops = AllOps();
    op->attributes = DefaultAttributes(
        ops[random->Int(0, static_cast<int64_t>(ops.size()) - 1)]);
    return;
  }
  const FieldMutator mutate{random};
  std::visit(
      [&](auto& a) {
        VisitFields(op->kind, a, [&](std::string_view, auto& value, bool) {
          if (random->OneIn(3)) mutate(&value);
        });
      },
      op->attributes);
}

void MutateOperands(TestRandom* random, Op* op) {
  Operand* const operand = AnyOf(random, &op->operands);
  switch (random->Int(0, 4)) {
    case 0:
      op->operands.emplace_back(ValueId{0});
      return;
    case 1:
      if (operand != nullptr) op->operands.pop_back();
      return;
    case 2:
      if (operand != nullptr) *operand = std::monostate();
      return;
    case 3:
      if (operand != nullptr) *operand = 1.0f;
      return;
    default:
      if (operand == nullptr) return;
      *operand =
          ValueId{random->OneIn(2) ? static_cast<int32_t>(random->Bits())
                                   : static_cast<int32_t>(random->Int(-1, 80))};
  }
}

void MutateOp(TestRandom* random, Op* op) {
  switch (random->Int(0, 4)) {
    case 0:
      op->kind = static_cast<OpKind>(random->Int(0, 110));
      return;
    case 1:
      op->name = HostileName(random);
      return;
    case 2:
      return MutateOperands(random, op);
    default:
      return MutateAttributes(random, op);
  }
}

void MutateInput(TestRandom* random, PlanInput* input) {
  const FieldMutator mutate{random};
  int64_t* const dim = AnyOf(random, &input->desc.dims);
  switch (random->Int(0, 4)) {
    case 0:
      return mutate(&input->desc.dtype);
    case 1:
      input->role = static_cast<InputRole>(random->Int(0, 255));
      return;
    case 2:
      input->name = HostileName(random);
      return;
    case 3:
      return mutate(&input->desc.dims);
    default:
      if (dim != nullptr) *dim = HostileInt(random);
  }
}

void MutateOutput(TestRandom* random, PlanOutput* output) {
  if (random->OneIn(2)) {
    output->dtype = static_cast<DataType>(random->Int(0, 255));
  } else {
    output->value.index = static_cast<int32_t>(HostileInt(random));
  }
}

// Repeats the last entry of `all` up to `count` entries, or empties it.
template <typename T>
void Resize(TestRandom* random, size_t count, std::vector<T>* all) {
  if (all->empty() || random->OneIn(2)) return all->clear();
  const T last = all->back();
  all->resize(count, last);
}

void MutateCounts(TestRandom* random, Plan* plan) {
  const size_t count = random->Int(1, 100);
  switch (random->Int(0, 2)) {
    case 0:
      return Resize(random, count, &plan->inputs);
    case 1:
      return Resize(random, count, &plan->ops);
    default:
      return Resize(random, count, &plan->outputs);
  }
}

}  // namespace

int64_t HostileInt(TestRandom* random) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kDim = (int64_t{1} << 31) - 1;
  return random->Pick({int64_t{0}, int64_t{-1}, int64_t{1}, int64_t{7}, kDim,
                       kDim + 1, kDim + 2, -kDim, kMax, kMin, kMax - 1,
                       int64_t{1} << 40, int64_t{1} << 62, int64_t{65536},
                       static_cast<int64_t>(random->Bits())});
}

void MutatePlan(TestRandom* random, Plan* plan) {
  Op* const op = AnyOf(random, &plan->ops);
  PlanInput* const input = AnyOf(random, &plan->inputs);
  PlanOutput* const output = AnyOf(random, &plan->outputs);
  switch (random->Int(0, 9)) {
    case 0:
      return MutateCounts(random, plan);
    case 1:
      plan->grade = static_cast<Grade>(random->Int(0, 255));
      return;
    case 2:
      if (output != nullptr) MutateOutput(random, output);
      return;
    case 3:
    case 4:
    case 5:
      if (input != nullptr) MutateInput(random, input);
      return;
    default:
      if (op != nullptr) MutateOp(random, op);
  }
}

}  // namespace kiln
