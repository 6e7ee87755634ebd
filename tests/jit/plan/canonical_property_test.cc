#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "jit/plan/attribute_fields.h"
#include "jit/plan/canonical.h"
#include "jit/plan/plan_text.h"
#include "jit/plan/validate.h"
#include "tests/jit/plan/plan_generator.h"

namespace kiln {
namespace {

constexpr uint64_t kSeed = 20240611;
constexpr int kPlans = 2000;

CanonicalPlan MustCanonicalize(const Plan& plan) {
  const absl::StatusOr<CanonicalPlan> canonical = Canonicalize(plan);
  EXPECT_TRUE(canonical.ok()) << canonical.status() << "\n" << ToText(plan);
  return canonical.ok() ? *canonical : CanonicalPlan();
}

std::string TextOf(const Plan& plan) {
  return CanonicalText(MustCanonicalize(plan));
}

std::vector<int> Permutation(TestRandom* random, size_t size) {
  std::vector<int> order(size);
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = size; i > 1; --i) {
    std::swap(order[i - 1], order[random->Int(0, static_cast<int64_t>(i) - 1)]);
  }
  return order;
}

// `plan` with value i called new_index[i] everywhere it is used.
void Renumber(const std::vector<int>& new_index, Plan* plan) {
  for (Op& op : plan->ops) {
    for (Operand& operand : op.operands) {
      auto* const value = std::get_if<ValueId>(&operand);
      if (value != nullptr) value->index = new_index[value->index];
    }
  }
  for (PlanOutput& output : plan->outputs) {
    output.value.index = new_index[output.value.index];
  }
}

Plan WithPermutedInputs(TestRandom* random, const Plan& plan) {
  const std::vector<int> order = Permutation(random, plan.inputs.size());
  Plan result = plan;
  std::vector<int> new_index(plan.inputs.size() + plan.ops.size());
  std::iota(new_index.begin(), new_index.end(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    result.inputs[i] = plan.inputs[order[i]];
    new_index[order[i]] = static_cast<int>(i);
  }
  Renumber(new_index, &result);
  return result;
}

bool IsReady(const Op& op, const std::vector<int>& new_index) {
  return std::all_of(op.operands.begin(), op.operands.end(),
                     [&](const Operand& operand) {
                       const auto* value = std::get_if<ValueId>(&operand);
                       return value == nullptr || new_index[value->index] >= 0;
                     });
}

// Another topological order: always the first ready op of a permutation.
Plan WithShuffledOps(TestRandom* random, const Plan& plan) {
  std::vector<int> pending = Permutation(random, plan.ops.size());
  std::vector<int> new_index(plan.inputs.size() + plan.ops.size(), -1);
  std::iota(new_index.begin(), new_index.begin() + plan.inputs.size(), 0);
  Plan result = plan;
  result.ops.clear();
  while (!pending.empty()) {
    const auto ready =
        std::find_if(pending.begin(), pending.end(),
                     [&](int op) { return IsReady(plan.ops[op], new_index); });
    new_index[plan.inputs.size() + *ready] =
        static_cast<int>(plan.inputs.size() + result.ops.size());
    result.ops.push_back(plan.ops[*ready]);
    pending.erase(ready);
  }
  Renumber(new_index, &result);
  return result;
}

// Changes one attribute to another value of its type.
struct Changer {
  void operator()(bool* value) const { *value = !*value; }
  void operator()(int64_t* value) const { ++*value; }
  void operator()(float* value) const {
    *value = std::bit_cast<float>(std::bit_cast<uint32_t>(*value) ^ 1u);
  }
  void operator()(Pair* value) const { ++(*value)[1]; }
  void operator()(Dims* value) const {
    if (value->size() > 1) value->pop_back();
  }
  void operator()(DataType* value) const {
    *value = *value == DataType::kF32 ? DataType::kF16 : DataType::kF32;
  }
  void operator()(GeluApproximate* value) const {
    *value = *value == GeluApproximate::kNone ? GeluApproximate::kTanh
                                              : GeluApproximate::kNone;
  }
  template <typename T>
  void operator()(std::optional<T>* value) const {
    if (value->has_value()) {
      (*this)(&**value);
    } else {
      value->emplace(T{3});
    }
  }
};

// Every plan that differs from `plan` in one attribute.
std::vector<Plan> AttributeChanges(const Plan& plan) {
  std::vector<Plan> changes;
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    int fields = 0;
    std::visit(
        [&](const auto& a) {
          VisitFields(plan.ops[i].kind, a,
                      [&](auto, const auto&, bool) { ++fields; });
        },
        plan.ops[i].attributes);
    for (int wanted = 0; wanted < fields; ++wanted) {
      Plan changed = plan;
      int field = 0;
      std::visit(
          [&](auto& a) {
            VisitFields(plan.ops[i].kind, a, [&](auto, auto& value, bool) {
              if (field++ == wanted) Changer()(&value);
            });
          },
          changed.ops[i].attributes);
      if (!(changed == plan)) changes.push_back(std::move(changed));
    }
  }
  return changes;
}

// Every plan that differs from `plan` in one type, extent, role, output type,
// the grade or one constant.
std::vector<Plan> OtherChanges(const Plan& plan) {
  std::vector<Plan> changes;
  const auto with = [&](auto change) {
    Plan changed = plan;
    change(&changed);
    changes.push_back(std::move(changed));
  };
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    with([i](Plan* p) { Changer()(&p->inputs[i].desc.dtype); });
    with([i](Plan* p) {
      InputRole& role = p->inputs[i].role;
      role = role == InputRole::kParameter ? InputRole::kActivation
                                           : InputRole::kParameter;
    });
    for (size_t d = 0; d < plan.inputs[i].desc.dims.size(); ++d) {
      with([i, d](Plan* p) { ++p->inputs[i].desc.dims[d]; });
    }
  }
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    for (size_t j = 0; j < plan.ops[i].operands.size(); ++j) {
      if (!std::holds_alternative<float>(plan.ops[i].operands[j])) continue;
      with([i, j](Plan* p) {
        Changer()(&std::get<float>(p->ops[i].operands[j]));
      });
      with([i](Plan* p) {
        std::swap(p->ops[i].operands[0], p->ops[i].operands[1]);
      });
    }
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    with([i](Plan* p) { Changer()(&p->outputs[i].dtype); });
  }
  with([](Plan* p) {
    p->grade = p->grade == Grade::kFp32 ? Grade::kTf32 : Grade::kFp32;
  });
  return changes;
}

class CanonicalPropertyTest : public testing::Test {
 protected:
  PlanGeneratorOptions options_{12, 2048, true};
  PlanGenerator generator_{kSeed, options_};
  TestRandom random_{kSeed};
};

TEST_F(CanonicalPropertyTest, RenamingKeepsTheText) {
  for (int i = 0; i < kPlans; ++i) {
    const Plan plan = generator_.Next();
    Plan renamed = plan;
    for (PlanInput& input : renamed.inputs) input.name += "q";
    for (Op& op : renamed.ops) op.name = "same";
    ASSERT_EQ(TextOf(renamed), TextOf(plan)) << ToText(plan);
  }
}

TEST_F(CanonicalPropertyTest, PermutingInputsKeepsTheText) {
  for (int i = 0; i < kPlans; ++i) {
    const Plan plan = generator_.Next();
    const Plan permuted = WithPermutedInputs(&random_, plan);
    ASSERT_EQ(TextOf(permuted), TextOf(plan))
        << ToText(plan) << ToText(permuted);
  }
}

TEST_F(CanonicalPropertyTest, ReorderingOpsKeepsTheText) {
  for (int i = 0; i < kPlans; ++i) {
    const Plan plan = generator_.Next();
    const Plan shuffled = WithShuffledOps(&random_, plan);
    ASSERT_EQ(TextOf(shuffled), TextOf(plan))
        << ToText(plan) << ToText(shuffled);
  }
}

TEST_F(CanonicalPropertyTest, AnyOtherChangeAltersTheText) {
  int valid = 0;
  for (int i = 0; i < kPlans / 4; ++i) {
    const Plan plan = MustCanonicalize(generator_.Next()).plan;
    const std::string text = TextOf(plan);
    std::vector<Plan> changes = AttributeChanges(plan);
    for (Plan& change : OtherChanges(plan)) changes.push_back(change);
    for (const Plan& changed : changes) {
      const auto canonical = Canonicalize(changed);
      if (!canonical.ok()) continue;
      ++valid;
      ASSERT_NE(CanonicalText(*canonical), text)
          << ToText(plan) << ToText(changed);
    }
  }
  EXPECT_GT(valid, 10 * kPlans / 4);
}

TEST_F(CanonicalPropertyTest, IsAFixedPoint) {
  for (int i = 0; i < kPlans; ++i) {
    const CanonicalPlan once = MustCanonicalize(generator_.Next());
    const CanonicalPlan twice = MustCanonicalize(once.plan);
    ASSERT_EQ(twice.plan, once.plan) << ToText(once.plan) << ToText(twice.plan);
    ASSERT_EQ(twice.values, once.values);
  }
}

TEST_F(CanonicalPropertyTest, ValuesAreThoseOfTheValidator) {
  for (int i = 0; i < kPlans; ++i) {
    const CanonicalPlan canonical = MustCanonicalize(generator_.Next());
    const auto values = ValidatePlan(canonical.plan);
    ASSERT_TRUE(values.ok()) << values.status();
    ASSERT_EQ(canonical.values, *values) << ToText(canonical.plan);
  }
}

TEST_F(CanonicalPropertyTest, SlotsLeadToTheClientsTensors) {
  for (int i = 0; i < kPlans; ++i) {
    const Plan plan = generator_.Next();
    const CanonicalPlan canonical = MustCanonicalize(plan);
    ASSERT_EQ(canonical.slot_of_input.size(), plan.inputs.size());
    for (size_t j = 0; j < plan.inputs.size(); ++j) {
      const int slot = canonical.slot_of_input[j];
      if (slot < 0) continue;
      const PlanInput& input = canonical.plan.inputs[slot];
      ASSERT_EQ(input.desc, plan.inputs[j].desc);
      ASSERT_EQ(input.role, plan.inputs[j].role);
    }
    ASSERT_EQ(canonical.slot_of_output.size(), plan.outputs.size());
    for (size_t j = 0; j < plan.outputs.size(); ++j) {
      ASSERT_EQ(canonical.slot_of_output[j],
                static_cast<int>(canonical.plan.inputs.size() + j));
    }
  }
}

}  // namespace
}  // namespace kiln
