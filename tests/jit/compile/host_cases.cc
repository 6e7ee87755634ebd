#include "tests/jit/compile/host_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <utility>

#include "jit/plan/plan_text.h"
#include "jit/plan/reference.h"
#include "jit/plan/reference_convert.h"
#include "tests/jit/plan/plan_generator.h"

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

// What a tensor of `type` has in the place of `value`.
double Stored(DataType type, double value) {
  char bytes[8];
  ElementsFromDouble(type, &value, 1, bytes);
  double stored = 0;
  ElementsToDouble(type, bytes, 1, &stored);
  return stored;
}

// One run of a plan on the same random inputs: by kernels in storage types, and
// by the reference in double.
struct HostRun {
  std::vector<std::vector<char>> buffers;     // the slots
  std::vector<std::vector<double>> expected;  // of each output
};

HostRun RunCase(const HostCase& test, int one_in, const HostRunner& runner) {
  std::mt19937 random(7);
  const Plan& plan = test.canonical.plan;
  HostRun run;
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
  runner(slots);
  return run;
}

// Share of wrong elements of the worst output.
double WrongShare(const HostCase& test, const HostRun& run, double factor) {
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
      if (actual == Stored(type, expected)) continue;  // beyond its range
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

}  // namespace

std::vector<HostCase> SmallCases() {
  std::vector<HostCase> cases;
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

std::vector<HostCase> CasesOf(std::span<const char* const> texts) {
  std::vector<HostCase> cases;
  for (const char* text : texts) {
    const Plan plan = *ParsePlanText(text);
    cases.push_back({{"large", text}, plan, *Canonicalize(plan)});
  }
  return cases;
}

std::vector<HostCase> RandomCases(
    uint64_t seed, size_t count,
    const std::function<bool(const HostCase&)>& is_wanted) {
  PlanGeneratorOptions options;
  options.max_ops = 8;
  options.max_elements = 1024;
  PlanGenerator generator(seed, options);
  std::vector<HostCase> cases;
  while (cases.size() < count) {
    const Plan plan = generator.Next();
    CanonicalPlan canonical = *Canonicalize(plan);
    HostCase test{
        {"random plan", ToText(canonical.plan)}, plan, std::move(canonical)};
    if (!is_wanted || is_wanted(test)) cases.push_back(std::move(test));
  }
  return cases;
}

void CheckCase(const HostCase& test, double factor, double max_wrong_share,
               const std::vector<int>& specials, const HostRunner& runner) {
  for (const int one_in : specials) {
    const HostRun run = RunCase(test, one_in, runner);
    EXPECT_LE(WrongShare(test, run, factor), max_wrong_share)
        << "one special value in " << one_in << "\n"
        << test.named.text;
  }
}

}  // namespace kiln
