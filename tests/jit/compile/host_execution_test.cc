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

// Enough elements for threads to take several.
constexpr const char* kLargePlans[] = {
    R"(
input x: f32[8,32,24,24]
input y: f32[8,1,24,24]
param c: f32[32,1,1]
param w: f32[24]
a = mul(x, c)
b = add(a, y)
z = mul(b, w)
output z: f16
output b
)",
    R"(
input x: f16[4,37,31,31]
input y: bf16[4,37,31,31]
param c: f16[37,1,1]
a = add(x, y)
z = mul(a, c)
output z: bf16
)",
    R"(
input x: bf16[137,1024]
param b: bf16[1024]
a = add(x, b)
z = relu(a)
output z: bf16
)",
    R"(
input x: f32[3,7,131,64]
a = sigmoid(x)
z = mean(a, dim=[1,3])
output z
)",
    R"(
input x: f16[1,300000]
z = sum(x)
output z: f32
)",
    R"(
input x: f32[2,12,29,32]
param w: f32[12,1,3,3]
param b: f32[12]
c = conv2d(x, w, b, padding=1, groups=12)
z = add(c, x)
output z
)",
    R"(
input x: f16[2,9,35,40]
param w: f32[18,1,3,5]
c = conv2d(x, w, stride=[1,2], padding=[0,2], groups=9)
output c: f32
)",
    R"(
input x: f32[2,3,24,27]
param w: f32[3,1,7,7]
c = conv2d(x, w, padding=4, groups=3)
z = relu(c)
output z
)",
    R"(
input x: f32[1,4,24,28]
param w: f32[4,1,3,3]
c = conv2d(x, w, padding=2, dilation=2, groups=4)
output c
)",
    R"(
input x: f32[4,33,64,64]
input y: f32[4,33,32,32]
a = relu(x)
b = max_pool2d(a, kernel_size=3, stride=2, padding=1)
z = add(b, y)
output z
)",
    R"(
input x: f16[2,65,64,32]
a = sigmoid(x)
b = avg_pool2d(a, kernel_size=3, stride=1, padding=1, count_include_pad=false)
output b: f32
)",
    R"(
input x: f32[2,70,61,33]
b = avg_pool2d(x, kernel_size=2, stride=2, ceil_mode=true)
c = max_pool2d(x, kernel_size=[2,3], stride=1, dilation=2)
output b
output c
)",
    R"(
input x: f32[1037,132]
z = logsumexp(x, dim=0)
output z
)",
};

// Rows in registers, blocks and strips, kept as they are or as they were read,
// powers in the place of what they are of, segments of rows.
constexpr const char* kRowPlans[] = {
    R"(
input x: f32[37,772]
param w: f32[772]
n = group_norm(x, w, num_groups=1)
y = add(n, x)
output y: f16
output n
)",
    R"(
input x: bf16[19,70]
a = mul(x, 3.0)
y = softmax(a, dim=1)
output y: f32
)",
    R"(
input x: bf16[3,10,17,16]
param w: f32[10]
a = relu(x)
n = group_norm(a, w, num_groups=2)
y = silu(n)
output y: bf16
)",
    R"(
input x: f32[2,6,23,29]
a = mish(x)
n = group_norm(a, num_groups=2)
y = add(n, a)
output y
output a
)",
    R"(
input x: f32[3,1600]
y = softmax(x, dim=1)
z = mul(y, x)
output z
)",
    R"(
input x: f32[5,2100]
param c: f32[2100]
a = mul(x, c)
y = softmax(a, dim=1)
output y
)",
    R"(
input x: f32[3,37,11,12]
y = softmax(x, dim=1)
output y
)",
    R"(
input x: f16[2,70,5,9]
param c: f32[70,1,1]
a = mul(x, c)
y = softmax(a, dim=1)
z = sub(y, a)
output z: f16
)",
    R"(
input x: f32[300,12]
input r: f32[300,12]
a = add(x, r)
y = softmax(a, dim=0)
output y
)",
    R"(
input x: f32[2,12,14,14]
param w: f32[12]
n = group_norm(x, w, num_groups=3)
s = silu(n)
m = mean(s, dim=[2,3])
y = tanh(m)
output y
output m: f16
)",
    R"(
input x: bf16[2,40,7,7]
n = group_norm(x, num_groups=2)
m = amax(n, dim=[2,3], keepdim=true)
output m
)",
    R"(
input x: bf16[3,8,9,32]
input r: f32[3,8,9,32]
a = add(x, r)
n = group_norm(a, num_groups=1)
m = logsumexp(n, dim=3)
output m
)",
    R"(
input x: f32[4,3,1536]
y = softmax(x, dim=2)
z = mul(y, x)
m = sum(z, dim=2)
output m
)",
};

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
