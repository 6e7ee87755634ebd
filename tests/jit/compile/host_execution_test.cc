// Generated kernels against the reference, without a GPU. Prevents wrong
// indices, broadcasts, fusions and workspace layouts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <span>

#include "jit/plan/plan_text.h"
#include "jit/plan/reference.h"
#include "jit/plan/reference_convert.h"
#include "tests/jit/compile/host_kernels.h"
#include "tests/jit/compile/host_plans.h"
#include "tests/jit/plan/plan_generator.h"
#include "tests/shape_sets.h"

namespace kiln {
namespace {

// Plans whose tensors are all below this many elements; larger ones take the
// reference and single threads too long.
constexpr int64_t kMaxElements = 40'000;

// Mixed into random tensors by the tests of special values.
constexpr float kSpecialValues[] = {0.0f, -0.0f,
                                    std::numeric_limits<float>::infinity(),
                                    -std::numeric_limits<float>::infinity(),
                                    std::numeric_limits<float>::quiet_NaN()};

// `one_in`: every how many elements is special; 0 for none.
std::vector<char> RandomTensor(const TensorDesc& desc, int one_in,
                               std::mt19937* random) {
  std::uniform_real_distribution<float> uniform(0.1f, 2.0f);
  std::vector<char> bytes(SizeBytes(desc));
  for (int64_t i = 0; i < NumElements(desc.dims); ++i) {
    float value = uniform(*random) * ((*random)() % 4 == 0 ? -0.2f : 1);
    if (one_in > 0 && (*random)() % one_in == 0) {
      value = kSpecialValues[(*random)() % std::size(kSpecialValues)];
    }
    const double wide = value;
    ElementsFromDouble(desc.dtype, &wide, 1,
                       bytes.data() + i * ElementSize(desc.dtype));
  }
  return bytes;
}

// Half a unit in the last place of the storage type, and what f32 arithmetic
// over a few thousand terms may add.
double Tolerance(DataType type, double reference) {
  const double storage = type == DataType::kF32   ? 0
                         : type == DataType::kF16 ? 0x1p-11
                                                  : 0x1p-8;
  return std::abs(reference) * (storage + 2e-6) + 2e-5;
}

struct Case {
  NamedPlan named;
  Plan plan;
  CanonicalPlan canonical;
};

std::vector<Case> SmallCases() {
  std::vector<Case> cases;
  for (const std::string& set : ShapeSetNames()) {
    for (NamedPlan& named : PlansOfShapeSet(set)) {
      const Plan plan = *ParsePlanText(named.text);
      CanonicalPlan canonical = *Canonicalize(plan);
      bool is_small = true;
      for (const TensorDesc& desc : canonical.values) {
        is_small &= NumElements(desc.dims) < kMaxElements;
      }
      if (is_small) {
        cases.push_back({std::move(named), plan, std::move(canonical)});
      }
    }
  }
  return cases;
}

std::vector<Case> CasesOf(std::span<const char* const> texts) {
  std::vector<Case> cases;
  for (const char* text : texts) {
    const Plan plan = *ParsePlanText(text);
    cases.push_back({{"large", text}, plan, *Canonicalize(plan)});
  }
  return cases;
}

// One run of a plan on the same random inputs: by its kernels in storage
// types, and by the reference in double.
struct Run {
  std::vector<std::vector<char>> buffers;     // the slots
  std::vector<std::vector<double>> expected;  // of each output
};

Run RunCase(const Case& test, const HostKernels& kernels, size_t program,
            int one_in) {
  std::mt19937 random(7);
  const Plan& plan = test.canonical.plan;
  Run run;
  for (const PlanInput& input : plan.inputs) {
    run.buffers.push_back(RandomTensor(input.desc, one_in, &random));
  }
  for (const PlanOutput& output : plan.outputs) {
    const Dims& dims = test.canonical.values[output.value.index].dims;
    run.buffers.emplace_back(SizeBytes({output.dtype, dims}), '\xff');
    run.expected.emplace_back(NumElements(dims));
  }
  std::vector<void*> slots;
  for (std::vector<char>& buffer : run.buffers) slots.push_back(buffer.data());
  std::vector<double*> outputs;
  for (std::vector<double>& values : run.expected) {
    outputs.push_back(values.data());
  }

  const std::vector<const void*> inputs(slots.begin(),
                                        slots.begin() + plan.inputs.size());
  EXPECT_TRUE(EvaluateReferenceToDouble(plan, inputs, outputs).ok());
  kernels.Run(program, slots);
  return run;
}

// Share of wrong elements in the worst output; the first is printed.
double WrongShare(const Case& test, const Run& run, double factor) {
  const Plan& plan = test.canonical.plan;
  double worst = 0;
  for (size_t o = 0; o < run.expected.size(); ++o) {
    const DataType type = plan.outputs[o].dtype;
    const char* const bytes = run.buffers[plan.inputs.size() + o].data();
    size_t wrong = 0;
    for (size_t i = 0; i < run.expected[o].size(); ++i) {
      const double expected = run.expected[o][i];
      double actual = 0;
      ElementsToDouble(type, bytes + i * ElementSize(type), 1, &actual);
      if (actual == expected || (actual != actual && expected != expected)) {
        continue;
      }
      const double error = std::abs(actual - expected);
      if (error <= factor * Tolerance(type, expected)) continue;
      if (wrong++ > 0) continue;
      std::printf("%s: output %zu, element %zu is %.9g, expected %.9g\n",
                  test.named.name.c_str(), o, i, actual, expected);
    }
    const double size = static_cast<double>(run.expected[o].size());
    worst = std::max(worst, static_cast<double>(wrong) / size);
  }
  return worst;
}

using MakeSchedule = Schedule (*)(const CanonicalPlan&);

Schedule Plain(const CanonicalPlan& plan) {
  return MakePlainSchedule(plan, {"sm_90a", 132});
}

// For a target without clusters and bulk copies, which no host has.
Schedule WithRowsOnChip(const CanonicalPlan& plan) {
  return MakeRowSchedule(plan, {"sm_80", 108});
}

bool KeepsRows(const Case& test) {
  const Schedule schedule = WithRowsOnChip(test.canonical);
  return std::any_of(
      schedule.kernels.begin(), schedule.kernels.end(),
      [](const Kernel& kernel) { return kernel.rows.has_value(); });
}

void CheckCases(const std::vector<Case>& cases, double factor,
                double max_wrong_share, const std::vector<int>& specials,
                MakeSchedule make_schedule = Plain) {
  std::vector<Schedule> schedules;
  schedules.reserve(cases.size());
  for (const Case& test : cases) {
    schedules.push_back(make_schedule(test.canonical));
  }
  const HostKernels kernels(std::move(schedules));
  for (size_t i = 0; i < cases.size(); ++i) {
    for (const int one_in : specials) {
      const Run run = RunCase(cases[i], kernels, i, one_in);
      EXPECT_LE(WrongShare(cases[i], run, factor), max_wrong_share)
          << "one special value in " << one_in << "\n"
          << cases[i].named.text;
    }
  }
}

TEST(HostExecutionTest, SmallPlansAgreeWithTheReference) {
  const std::vector<Case> cases = SmallCases();
  ASSERT_GT(cases.size(), 100u);
  CheckCases(cases, 1.0, 0.0, {0, 5});
}

// Prevents wrong vectors: widths by type, operands that run along w or are
// shared, rows that vectors cross, tails, and tensors that are not aligned.
TEST(HostExecutionTest, LargePlansTakeVectors) {
  CheckCases(CasesOf(kLargePlans), 1.0, 0.0, {0, 5});
}

// Random chains may amplify an error without bound at single elements, where
// a sum cancels or near a pole; wrong indices or a wrong order of kernels
// spoil nearly all.
TEST(HostExecutionTest, RandomPlansAgreeWithTheReference) {
  constexpr uint64_t kSeed = 20261121;
  PlanGeneratorOptions options;
  options.max_ops = 8;
  options.max_elements = 1024;
  PlanGenerator generator(kSeed, options);
  std::vector<Case> cases;
  for (int i = 0; i < 100; ++i) {
    const Plan plan = generator.Next();
    CanonicalPlan canonical = *Canonicalize(plan);
    cases.push_back(
        {{"random plan", ToText(canonical.plan)}, plan, std::move(canonical)});
  }
  CheckCases(cases, 50.0, 0.1, {0});
}

// Normalisations whose rows stay on chip: those of the shape sets, and random
// chains around them.
TEST(HostExecutionTest, RowsOnChipAgreeWithTheReference) {
  std::vector<Case> cases;
  for (Case& test : SmallCases()) {
    if (KeepsRows(test)) cases.push_back(std::move(test));
  }
  ASSERT_GT(cases.size(), 20u);
  CheckCases(cases, 1.0, 0.0, {0, 5}, WithRowsOnChip);
}

// Prevents wrong places of what is kept, and wrong ends of rows, strips and
// segments. One special value in 997: some rows have none, some one.
TEST(HostExecutionTest, LargeRowsOnChipAgreeWithTheReference) {
  const std::vector<Case> cases = CasesOf(kRowPlans);
  for (const Case& test : cases) {
    const Schedule schedule = WithRowsOnChip(test.canonical);
    EXPECT_EQ(schedule.kernels.size(), 1u) << test.named.text;
    EXPECT_TRUE(schedule.kernels[0].rows.has_value()) << test.named.text;
  }
  CheckCases(cases, 1.0, 0.0, {0, 997, 5}, WithRowsOnChip);
}

// The schedule that asks nothing of a device, with rows in the hands of a team.
Schedule InTurns(const CanonicalPlan& plan) {
  for (int rank = 0; rank <= kMaxTuningRank; ++rank) {
    std::vector<Schedule> schedules =
        MakeSchedules(plan, {"sm_90a", 4}, Room::kTight, {0, rank});
    if (schedules.size() == 2) return std::move(schedules[1]);
  }
  ADD_FAILURE() << "no team takes the plan";
  return Plain(plan);
}

// Prevents that blocks wait for each other, which need not run at the same
// time, and wrong places in the ring.
TEST(HostExecutionTest, TeamsInTurnsAgreeWithTheReference) {
  CheckCases(CasesOf(kTeamPlans), 1.0, 0.0, {0, 30'011}, InTurns);
}

TEST(HostExecutionTest, RandomPlansWithRowsOnChipAgreeWithTheReference) {
  constexpr uint64_t kSeed = 20261122;
  PlanGeneratorOptions options;
  options.max_ops = 8;
  options.max_elements = 1024;
  PlanGenerator generator(kSeed, options);
  std::vector<Case> cases;
  while (cases.size() < 40) {
    const Plan plan = generator.Next();
    CanonicalPlan canonical = *Canonicalize(plan);
    Case test{
        {"random plan", ToText(canonical.plan)}, plan, std::move(canonical)};
    if (KeepsRows(test)) cases.push_back(std::move(test));
  }
  CheckCases(cases, 50.0, 0.1, {0}, WithRowsOnChip);
}

}  // namespace
}  // namespace kiln
