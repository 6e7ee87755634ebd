// Interval analysis against what kernels compute: random chains of calls on
// numbers of every kind, built by the C++ compiler.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "jit/compile/value_range.h"
#include "tests/jit/compile/elementwise_cases.h"

namespace kiln {
namespace {

// A random call of earlier values. What it can be says how ranges arise: calls
// that bound, calls that scale, and calls that care.
class ChainGenerator {
 public:
  explicit ChainGenerator(uint32_t seed) : random_(seed) {}

  // Of `count` values, v0 and so on.
  std::string Next(int count) {
    std::string lines;
    for (int i = 0; i < count; ++i) {
      lines += fmt::format("v{} = {}\n", i, Call(i));
    }
    return lines;
  }

 private:
  static constexpr const char* kUnary[] = {
      "relu({})",
      "tanh({})",
      "sigmoid({})",
      "silu({})",
      "hardswish({})",
      "hardsigmoid({})",
      "mish({})",
      "abs({})",
      "neg({})",
      "exp({})",
      "sqrt({})",
      "gelu({})",
      "gelu({}, approximate=tanh)",
      "hardtanh({})",
      "hardtanh({}, min_val=-3.0, max_val=0.5)",
      "clamp({}, min=-0.0)",
      "clamp({}, max=2.0)",
      "clamp({}, min=-70.0, max=80.0)",
      "clamp({}, min=2.0, max=1.0)",
      "leaky_relu({})",
      "leaky_relu({}, negative_slope=-2.0)",
      "leaky_relu({}, negative_slope=0.0)",
      "elu({})",
      "elu({}, alpha=-0.5)",
      "softplus({})",
      "softplus({}, beta=0.5, threshold=1.0)",
      "softplus({}, beta=-2.0)",
      "cast({}, dtype=f16)",
      "cast({}, dtype=bf16)",
      "mul({}, 0.3)",
      "mul({}, -1e30)",
      "add({}, 3.0)",
      "sub(1.0, {})",
      "div({}, 3.0)",
      "div({}, -0.25)",
      "div(1.0, {})",
      "maximum({}, 0.0)",
      "minimum(-0.0, {})",
      "minimum({}, 0.0)",
  };
  static constexpr const char* kBinary[] = {"add", "sub",     "mul",
                                            "div", "minimum", "maximum"};

  std::string Value(int defined) {
    const int index = static_cast<int>(random_() % (defined + 2));
    const int recent = defined > 0 && random_() % 2 == 0 ? defined - 1 : index;
    if (recent >= defined) return recent == defined ? "x" : "y";
    return fmt::format("v{}", recent);
  }

  std::string Call(int defined) {
    if (random_() % 4 == 0) {
      const char* const name = kBinary[random_() % std::size(kBinary)];
      const std::string first = Value(defined);
      return fmt::format("{}({}, {})", name, first, Value(defined));
    }
    const char* const form = kUnary[random_() % std::size(kUnary)];
    return fmt::format(fmt::runtime(form), Value(defined));
  }

  std::mt19937 random_;
};

bool IsIn(const ValueRange& range, float value) {
  return std::isnan(value) ||
         !(IsBelow(value, range.low) || IsBelow(range.high, value));
}

// Every value that a kernel computes, by its calls with and without ranges.
TEST(ValueRangesExecutionTest, EveryValueIsInItsRange) {
  constexpr int kChains = 120, kLength = 8;
  ChainGenerator generator(20261121);
  std::vector<ElementwiseCase> cases;
  for (int i = 0; i < kChains; ++i) {
    std::vector<std::string> outputs;
    for (int v = 0; v < kLength; ++v) outputs.push_back(fmt::format("v{}", v));
    cases.push_back(ElementwiseCaseOf(generator.Next(kLength), outputs));
  }
  std::vector<Schedule> schedules;
  for (const ElementwiseCase& test : cases) {
    schedules.push_back(test.schedule);
    schedules.push_back(WithoutRanges(test.schedule));
  }
  const HostKernels kernels(std::move(schedules));
  const std::vector<float> x = EdgeValues(4);
  const std::vector<float> y = EdgeValues(5);
  for (size_t program = 0; program < 2 * cases.size(); ++program) {
    const ElementwiseCase& test = cases[program / 2];
    const std::vector<PlanOutput>& outputs = test.plan.plan.outputs;
    const std::vector<std::vector<float>> results =
        OutputsOf(kernels, program, test.plan, x, y);
    for (size_t o = 0; o < outputs.size(); ++o) {
      const ValueRange& range =
          test.schedule.lowered.values[outputs[o].value.index].range;
      for (size_t k = 0; k < kCaseElements; ++k) {
        ASSERT_TRUE(IsIn(range, results[o][k]))
            << test.text << "output " << o << " of " << x[k] << ", " << y[k]
            << " is " << results[o][k] << ", not in " << ToText(range);
      }
    }
  }
}

}  // namespace
}  // namespace kiln
