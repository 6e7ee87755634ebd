// Dead clamps and their like: what the generated code becomes, and that it
// computes the same. Units are built by the C++ compiler and run as they are
// and with every range unknown.
#include "jit/compile/range_rewrites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "jit/compile/specialize.h"
#include "jit/compile/value_range.h"
#include "jit/plan/plan_text.h"
#include "tests/jit/compile/host_kernels.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kElements = 8192;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Case {
  std::string text;
  CanonicalPlan plan;
  Schedule schedule;
};

// A plan of the inputs x and y and of `lines`, with the values in `outputs`.
Case CaseOf(const std::string& lines, const std::vector<std::string>& outputs) {
  std::string text = fmt::format("input x: f32[{0}]\ninput y: f32[{0}]\n{1}\n",
                                 kElements, lines);
  for (const std::string& output : outputs)
    text += "output " + output + ": f32\n";
  Case result{text, *Canonicalize(*ParsePlanText(text)), {}};
  result.schedule = MakePlainSchedule(result.plan, {"sm_90a", 132});
  return result;
}

std::string UnitOf(const std::string& lines) {
  const Schedule schedule = CaseOf(lines, {"r"}).schedule;
  return WriteUnit(MakeKernelSpec(schedule, schedule.kernels[0]));
}

Schedule WithoutRanges(Schedule schedule) {
  for (LoweredValue& value : schedule.lowered.values) value.range = {};
  return schedule;
}

// Zeros, denormals, the ends of ranges that functions care about, numbers of
// every exponent, infinities and NaN.
std::vector<float> EdgeValues(uint32_t seed) {
  std::vector<float> values;
  for (const float x : {0.0f,
                        1e-45f,
                        1e-39f,
                        0x1p-126f,
                        0.599f,
                        0.6f,
                        1.0f,
                        2.0f,
                        3.0f,
                        std::nextafter(3.0f, 4.0f),
                        6.0f,
                        20.0f,
                        79.9f,
                        88.8f,
                        65504.0f,
                        65520.0f,
                        1e19f,
                        3e38f,
                        std::numeric_limits<float>::max(),
                        kInfinity}) {
    values.insert(values.end(), {x, -x});
  }
  values.push_back(std::numeric_limits<float>::quiet_NaN());
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> near(-8.0f, 8.0f);
  while (values.size() < kElements) {
    values.push_back(random() % 3 == 0 ? near(random)
                                       : std::bit_cast<float>(
                                             static_cast<uint32_t>(random())));
  }
  std::shuffle(values.begin(), values.end(), random);
  return values;
}

// The outputs of a program on `x` and `y`.
std::vector<std::vector<float>> OutputsOf(const HostKernels& kernels,
                                          size_t program, size_t count,
                                          std::vector<float> x,
                                          std::vector<float> y) {
  std::vector<std::vector<float>> outputs(count, std::vector<float>(kElements));
  std::vector<void*> slots = {x.data(), y.data()};
  for (std::vector<float>& output : outputs) slots.push_back(output.data());
  kernels.Run(program, slots);
  return outputs;
}

bool AreSame(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

TEST(RangeRewritesTest, ClampsThatNeverBindAreDropped) {
  EXPECT_THAT(UnitOf("t = tanh(x)\nr = clamp(t, min=-1.0, max=1.0)"),
              HasSubstr("const float v1 = v0;"));
  EXPECT_THAT(UnitOf("t = sigmoid(x)\nr = relu(t)"),
              HasSubstr("const float v1 = v0;"));
  EXPECT_THAT(UnitOf("t = exp(x)\nr = abs(t)"),
              HasSubstr("const float v1 = v0;"));
  EXPECT_THAT(UnitOf("t = relu(x)\nr = leaky_relu(t)"),
              HasSubstr("const float v1 = v0;"));
  EXPECT_THAT(UnitOf("t = hardtanh(x)\nr = maximum(-2.0, t)"),
              HasSubstr("const float v1 = v0;"));
  EXPECT_THAT(UnitOf("t = clamp(x, min=0.0, max=6.0)\n"
                     "r = clamp(t, min=-1.0, max=7.0)"),
              HasSubstr("const float v1 = v0;"));
}

TEST(RangeRewritesTest, ClampsKeepTheBoundThatCanBind) {
  EXPECT_THAT(UnitOf("t = relu(x)\nr = clamp(t, min=0.0, max=6.0)"),
              HasSubstr("kiln::Minimum(v0, 0x1.8p+2f)"));
  EXPECT_THAT(UnitOf("t = tanh(x)\nr = clamp(t, min=0.0, max=6.0)"),
              HasSubstr("kiln::Maximum(v0, 0x0p+0f)"));
  EXPECT_THAT(UnitOf("t = relu(x)\nr = hardswish(t)"),
              HasSubstr("kiln::Hardswish<kiln::Bounds::kUpper>(v0)"));
  EXPECT_THAT(UnitOf("t = neg(x)\nr = clamp(t, min=0.0, max=6.0)"),
              HasSubstr("kiln::Clamp(v0, 0x0p+0f, 0x1.8p+2f)"));
  // A sum may exceed the bound by its rounding; a zero may change its sign.
  EXPECT_THAT(UnitOf("a = mul(x, x)\nt = sqrt(a)\nr = relu(t)"),
              HasSubstr("kiln::Relu"));
  EXPECT_THAT(UnitOf("t = clamp(x, min=-0.0)\nr = relu(t)"),
              HasSubstr("kiln::Relu"));
}

TEST(RangeRewritesTest, FunctionsOfBoundedArgumentsAreCheaper) {
  EXPECT_THAT(UnitOf("t = tanh(x)\nr = hardswish(t)"),
              HasSubstr("kiln::HardswishInside(v0)"));
  EXPECT_THAT(
      UnitOf("t = hardtanh(x, min_val=-3.0, max_val=3.0)\nr = hardswish(t)"),
      HasSubstr("kiln::Hardswish<kiln::Bounds::kNone>(v0)"));
  EXPECT_THAT(UnitOf("t = tanh(x)\nr = exp(t)"),
              HasSubstr("kiln::Exp<kiln::Reach::kSmall>(v0)"));
  EXPECT_THAT(UnitOf("t = clamp(x, min=-20.0, max=20.0)\nr = exp(t)"),
              HasSubstr("kiln::Exp<kiln::Reach::kBounded>(v0)"));
  EXPECT_THAT(UnitOf("t = clamp(x, min=-90.0, max=20.0)\nr = exp(t)"),
              HasSubstr("kiln::Exp(v0)"));
  EXPECT_THAT(UnitOf("t = tanh(x)\nr = softplus(t)"),
              HasSubstr("kiln::SoftplusBelow(v0, 0x1p+0f)"));
}

TEST(RangeRewritesTest, NaNBoundsStay) {
  EXPECT_THAT(UnitOf("t = tanh(x)\nr = clamp(t, min=-2.0, max=nan)"),
              HasSubstr("kiln::Clamp(v0"));
  EXPECT_THAT(UnitOf("t = tanh(x)\nr = maximum(t, nan)"),
              HasSubstr("kiln::Maximum(v0"));
}

// Chains whose rewrites promise the same bits.
constexpr const char* kExactChains[] = {
    "t = tanh(x)\nr = clamp(t, min=-1.0, max=1.0)",
    "t = tanh(x)\nr = clamp(t, min=-0.5, max=2.0)",
    "t = sigmoid(x)\nr = relu(t)",
    "t = relu(x)\nr = clamp(t, min=0.0, max=6.0)",
    "t = relu(x)\nr = hardswish(t)",
    "t = relu(x)\nr = hardsigmoid(t)",
    "t = clamp(x, max=2.0)\nr = hardswish(t)",
    "t = clamp(x, min=-3.0, max=3.0)\nr = hardswish(t)",
    "t = clamp(x, min=-3.0, max=3.0)\nr = hardsigmoid(t)",
    "t = exp(x)\nr = abs(t)",
    "t = abs(x)\nr = leaky_relu(t)",
    "t = clamp(x, max=-0.0)\nr = leaky_relu(t)",
    "t = clamp(x, max=-0.0)\nr = elu(t, alpha=1.5)",
    "t = relu(x)\nr = elu(t, alpha=1.5)",
    "t = clamp(x, min=-0.5, max=0.5)\nr = tanh(t)",
    "t = clamp(x, min=-5.0, max=10.0)\nr = softplus(t, beta=1.5)",
    "t = clamp(x, min=30.0)\nr = softplus(t)",
    "t = silu(x)\nr = clamp(t, min=-1.0, max=50.0)",
    "t = mish(x)\nr = maximum(-0.5, t)",
    "t = cast(x, dtype=f16)\nu = tanh(t)\nv = cast(u, dtype=bf16)\n"
    "r = hardtanh(v)",
    "t = clamp(x, min=0.0, max=2.0)\ns = hardtanh(y)\nu = mul(t, s)\n"
    "r = clamp(u, min=-2.0, max=3.0)",
};

// Those that only promise the same errors. The numbers are the largest sum of
// both errors, in units in the last place and beside 1.
struct NearChain {
  const char* lines;
  double max_ulp;
};
constexpr NearChain kNearChains[] = {
    {"t = tanh(x)\nr = hardswish(t)", 3.7},
    {"t = tanh(x)\nr = hardsigmoid(t)", 2.4},
    {"t = tanh(x)\nr = exp(t)", 4.5},
    {"t = clamp(x, min=-80.0, max=80.0)\nr = exp(t)", 4.5},
    {"t = tanh(x)\nr = sigmoid(t)", 7.0},
    {"t = tanh(x)\nr = silu(t)", 7.5},
    {"t = tanh(x)\nr = mish(t)", 12.0},
};

// Each chain as it is, then with every range unknown.
std::vector<Schedule> BothWays(const std::vector<Case>& cases) {
  std::vector<Schedule> schedules;
  for (const Case& test : cases) {
    schedules.push_back(test.schedule);
    schedules.push_back(WithoutRanges(test.schedule));
    const auto unit = [](const Schedule& schedule) {
      return WriteUnit(MakeKernelSpec(schedule, schedule.kernels[0]));
    };
    EXPECT_NE(unit(schedules[schedules.size() - 2]), unit(schedules.back()))
        << test.text;
  }
  return schedules;
}

TEST(RangeRewritesTest, ExactRewritesGiveTheSameBits) {
  std::vector<Case> cases;
  for (const char* lines : kExactChains) cases.push_back(CaseOf(lines, {"r"}));
  const HostKernels kernels(BothWays(cases));
  const std::vector<float> x = EdgeValues(1);
  const std::vector<float> y = EdgeValues(2);
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::vector<float> with = OutputsOf(kernels, 2 * i, 1, x, y)[0];
    const std::vector<float> without =
        OutputsOf(kernels, 2 * i + 1, 1, x, y)[0];
    for (size_t k = 0; k < kElements; ++k) {
      ASSERT_TRUE(AreSame(with[k], without[k]))
          << cases[i].text << x[k] << ": " << with[k] << ", not " << without[k];
    }
  }
}

double UlpAt(float value) {
  const int exponent = std::ilogb(std::max(std::fabs(value), 0x1p-126f));
  return std::ldexp(1.0, exponent - 23);
}

TEST(RangeRewritesTest, OtherFormulasAreAsExact) {
  std::vector<Case> cases;
  for (const NearChain& chain : kNearChains) {
    cases.push_back(CaseOf(chain.lines, {"r"}));
  }
  const HostKernels kernels(BothWays(cases));
  const std::vector<float> x = EdgeValues(3);
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::vector<float> with = OutputsOf(kernels, 2 * i, 1, x, x)[0];
    const std::vector<float> without =
        OutputsOf(kernels, 2 * i + 1, 1, x, x)[0];
    for (size_t k = 0; k < kElements; ++k) {
      if (AreSame(with[k], without[k])) continue;
      ASSERT_FALSE(std::isnan(with[k]) || std::isnan(without[k]))
          << cases[i].text << x[k];
      ASSERT_LE(std::fabs(double{with[k]} - without[k]) / UlpAt(without[k]),
                kNearChains[i].max_ulp)
          << cases[i].text << x[k];
    }
  }
}

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
TEST(RangeRewritesTest, EveryValueIsInItsRange) {
  constexpr int kChains = 120, kLength = 8;
  ChainGenerator generator(20261121);
  std::vector<Case> cases;
  for (int i = 0; i < kChains; ++i) {
    std::vector<std::string> outputs = {"o"};  // so that y is used
    for (int v = 0; v < kLength; ++v) outputs.push_back(fmt::format("v{}", v));
    cases.push_back(
        CaseOf("o = add(x, y)\n" + generator.Next(kLength), outputs));
  }
  std::vector<Schedule> schedules;
  for (const Case& test : cases) {
    schedules.push_back(test.schedule);
    schedules.push_back(WithoutRanges(test.schedule));
  }
  const HostKernels kernels(std::move(schedules));
  const std::vector<float> x = EdgeValues(4);
  const std::vector<float> y = EdgeValues(5);
  for (size_t program = 0; program < 2 * cases.size(); ++program) {
    const Case& test = cases[program / 2];
    const std::vector<PlanOutput>& outputs = test.plan.plan.outputs;
    const std::vector<std::vector<float>> results =
        OutputsOf(kernels, program, outputs.size(), x, y);
    for (size_t o = 0; o < outputs.size(); ++o) {
      const ValueRange& range =
          test.schedule.lowered.values[outputs[o].value.index].range;
      for (size_t k = 0; k < kElements; ++k) {
        ASSERT_TRUE(IsIn(range, results[o][k]))
            << test.text << "output " << o << " of " << x[k] << ", " << y[k]
            << " is " << results[o][k] << ", not in " << ToText(range);
      }
    }
  }
}

}  // namespace
}  // namespace kiln
