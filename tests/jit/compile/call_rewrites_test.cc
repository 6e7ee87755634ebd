// Dead clamps and their like: what the generated code becomes, and that it
// computes the same. Units are built by the C++ compiler and run as they are
// and with every range unknown.
#include "jit/compile/call_rewrites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "jit/compile/specialize.h"
#include "jit/plan/plan_text.h"
#include "tests/jit/compile/elementwise_cases.h"

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string UnitOf(const std::string& lines) {
  const Schedule schedule = ElementwiseCaseOf(lines, {"r"}).schedule;
  return WriteUnit(MakeKernelSpec(schedule, schedule.kernels[0]));
}

bool AreSame(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

TEST(CallRewritesTest, ClampsThatNeverBindAreDropped) {
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

TEST(CallRewritesTest, ClampsKeepTheBoundThatCanBind) {
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

TEST(CallRewritesTest, FunctionsOfBoundedArgumentsAreCheaper) {
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

TEST(CallRewritesTest, OnlyErrorsBesideOneCountBeforeLogSumExp) {
  const auto tanh_before = [](const std::string& lines) {
    return UnitOf("t = tanh(x)\n" + lines);
  };
  const auto beside_one = HasSubstr("kiln::TanhBesideOne(");
  EXPECT_THAT(tanh_before("r = logsumexp(t, dim=1)"), beside_one);
  // What may leave one power alone, whose logarithm may be small.
  EXPECT_THAT(tanh_before("h = hardswish(t)\ns = add(h, y)\n"
                          "r = logsumexp(s, dim=1)"),
              Not(beside_one));
  EXPECT_THAT(tanh_before("m = mul(y, 1e30)\ns = minimum(t, m)\n"
                          "r = logsumexp(s, dim=1)"),
              Not(beside_one));
  EXPECT_THAT(tanh_before("s = mul(t, 0.5)\nr = logsumexp(s, dim=1)"),
              beside_one);
  EXPECT_THAT(tanh_before("s = mul(t, y)\nr = logsumexp(s, dim=1)"),
              Not(beside_one));
  EXPECT_THAT(tanh_before("s = div(y, t)\nr = logsumexp(s, dim=1)"),
              Not(beside_one));
  EXPECT_THAT(tanh_before("s = logsumexp(t, dim=1, keepdim=true)\n"
                          "r = sub(t, s)"),
              Not(beside_one));
  EXPECT_THAT(tanh_before("r = sum(t, dim=1)"), Not(beside_one));
}

std::string UnitsOf(const std::string& text) {
  const CanonicalPlan plan = *Canonicalize(*ParsePlanText(text));
  const Schedule schedule =
      MakeSchedules(plan, {"sm_90a", 132}, Room::kPlain).front();
  std::string units;
  for (const Kernel& kernel : schedule.kernels) {
    units += WriteUnit(MakeKernelSpec(schedule, kernel));
  }
  return units;
}

// The units of a chain like P2 in this grade.
std::string UnitsIn(const std::string& grade, const std::string& source,
                    const std::string& end = "logsumexp(h, dim=1)") {
  return UnitsOf(
      "grade " + grade +
      "\ninput x: f32[2,8,16,16]\nparam w: f32[8,8,3,3]\nc = " + source +
      "\nt = tanh(c)\nh = hardswish(t)\nr = " + end + "\noutput r\n");
}

TEST(CallRewritesTest, TanhBehindTf32ProductsIsOneInstruction) {
  const std::string conv = "conv2d(x, w)";
  EXPECT_THAT(UnitsIn("tf32", conv), HasSubstr("kiln::ApproximateTanh("));
  EXPECT_THAT(UnitsIn("fp32", conv), HasSubstr("kiln::TanhBesideOne("));
  EXPECT_THAT(UnitsOf("input x: f32[2,8,16,16]\nparam w: f32[8,8,3,3]\n"
                      "c = conv2d(x, w)\nt = tanh(c)\na = add(t, c)\n"
                      "r = logsumexp(a, dim=1)\noutput r\n"),
              HasSubstr("kiln::TanhBesideOne("));
  EXPECT_THAT(UnitsIn("tf32", "mul(x, 2.0)"),
              HasSubstr("kiln::TanhBesideOne("));
}

// PyTorch rounds each value of 16 bits to as few.
TEST(CallRewritesTest, TanhOf16BitsBehindWhichPowersAreSummedIsOneInstruction) {
  const auto units = [](const std::string& type, const std::string& lines,
                        const std::string& output) {
    return UnitsOf(
        "input x: " + type + "[2,8,16,16]\nparam w: " + type + "[8,8,3,3]\n" +
        lines +
        "\na = add(t, c)\nr = logsumexp(a, dim=1)\noutput r: " + output + "\n");
  };
  const auto approximate = HasSubstr("kiln::ApproximateTanh(");
  const std::string lines = "c = conv2d(x, w)\nt = tanh(c)";
  EXPECT_THAT(units("f16", lines, "f16"), approximate);
  EXPECT_THAT(units("bf16", lines, "bf16"), approximate);
  EXPECT_THAT(units("f16", lines, "f32"), Not(approximate));
  EXPECT_THAT(
      units("f16", "k = conv2d(x, w)\nc = cast(k, dtype=f32)\nt = tanh(c)",
            "f16"),
      Not(approximate));
  EXPECT_THAT(UnitsOf("grade tf32\ninput x: f16[2,8,16,16]\n"
                      "input z: f32[2,8,16,16]\nc = mul(x, z)\n"
                      "t = tanh(c)\nr = logsumexp(t, dim=1)\noutput r: f16\n"),
              Not(approximate))
      << "f32, and no products of tensor cores";
}

// An error of what it is taken of is as large in a share, which is not a mean
// of several.
TEST(CallRewritesTest, ErrorsBesideOneCountBeforeSoftmaxOfTf32Products) {
  const auto units = [](const std::string& grade, const std::string& source) {
    return UnitsIn(grade, source, "softmax(h, dim=1)");
  };
  EXPECT_THAT(units("tf32", "conv2d(x, w)"),
              AllOf(HasSubstr("kiln::TanhBesideOne("),
                    Not(HasSubstr("kiln::ApproximateTanh("))));
  EXPECT_THAT(units("fp32", "conv2d(x, w)"), HasSubstr("kiln::Tanh("));
  EXPECT_THAT(units("tf32", "mul(x, 2.0)"), HasSubstr("kiln::Tanh("));
}

// Of what is nearly all bias the products' error is as small as they are.
TEST(CallRewritesTest, GeluOfTf32ProductsIsExact) {
  EXPECT_THAT(UnitsOf("grade tf32\ninput x: f32[2,8,16,16]\n"
                      "param w: f32[8,8,3,3]\nc = conv2d(x, w)\ng = gelu(c)\n"
                      "r = group_norm(g, num_groups=2)\noutput r\n"),
              HasSubstr("kiln::Gelu<"));
}

// What is subtracted behind a norm is the error that neighbours share.
TEST(CallRewritesTest, GeluBehindWhichANormMakes16BitsHas15) {
  const auto units = [](const std::string& lines, const std::string& output) {
    return UnitsOf(
        "input x: f16[2,8,16,16]\nparam w: f16[8,8,3,3]\n"
        "param m: f16[8]\nparam v: f16[8]\n"
        "c = conv2d(x, w)\ng = gelu(c)\n" +
        lines + "\noutput " + output + "\n");
  };
  const auto shorter = HasSubstr("kiln::GeluForHalf<kiln::OfInfinity::kNaN>(");
  const auto exact = AnyOf(HasSubstr("kiln::Gelu("), HasSubstr("kiln::Gelu<"));
  EXPECT_THAT(units("r = group_norm(g, num_groups=2)", "r: f16"), shorter);
  EXPECT_THAT(units("n = group_norm(g, num_groups=2)\nr = relu(n)", "r: bf16"),
              shorter);
  EXPECT_THAT(units("r = group_norm(g, num_groups=2)", "r: f32"), exact);
  EXPECT_THAT(units("n = group_norm(g, num_groups=2)\nr = exp(n)", "r: f16"),
              exact);
  EXPECT_THAT(units("r = batch_norm(g, m, v)", "r: f16"), exact);
  EXPECT_THAT(units("r = group_norm(g, num_groups=2)\noutput g: f32", "r: f16"),
              exact);
}

// A norm makes NaN of infinities, and of NaN.
TEST(CallRewritesTest, InfinitiesOfGeluCountWhereNotOnlyANormReadsThem) {
  const auto units = [](const std::string& lines) {
    return UnitsOf("input x: f32[2,8,16,16]\ng = gelu(x)\n" + lines +
                   "\noutput r\n");
  };
  const auto either = HasSubstr("kiln::Gelu<kiln::OfInfinity::kNaN>(");
  const auto all = HasSubstr("kiln::Gelu(");
  EXPECT_THAT(units("r = group_norm(g, num_groups=2)"), either);
  EXPECT_THAT(units("n = group_norm(g, num_groups=2)\nr = relu(n)"), either);
  EXPECT_THAT(units("n = group_norm(g, num_groups=2)\nr = add(n, g)"), all);
  EXPECT_THAT(units("r = group_norm(g, num_groups=2)\noutput g"), all);
  EXPECT_THAT(units("s = mul(g, 2.0)\nr = softmax(s, dim=1)"), all);
}

// Of lines that make r of f32 x and y, with its output of `type`.
std::string UnitOfOutput(const std::string& type, const std::string& lines) {
  return UnitsOf("input x: f32[64,64]\ninput y: f32[64,64]\n" + lines +
                 "\noutput r: " + type + "\n");
}

TEST(CallRewritesTest, WhatIsRoundedTo16BitsIsComputedForThat) {
  const auto for_half = HasSubstr("kiln::SiluForHalf(");
  for (const char* type : {"f16", "bf16"}) {
    EXPECT_THAT(UnitOfOutput(type, "r = silu(x)"), for_half);
    EXPECT_THAT(UnitOfOutput(type, "s = silu(x)\nr = mul(s, y)"), for_half);
    EXPECT_THAT(UnitOfOutput(type, "r = sigmoid(x)"),
                HasSubstr("kiln::SigmoidForHalf("));
    EXPECT_THAT(UnitOfOutput(type, "r = exp(x)"),
                HasSubstr("kiln::ExpForHalf("));
    EXPECT_THAT(UnitOfOutput(type, "r = mish(x)"),
                HasSubstr("kiln::MishForHalf("));
    EXPECT_THAT(UnitOfOutput(type, "r = tanh(x)"),
                HasSubstr("kiln::TanhForHalf("));
    EXPECT_THAT(UnitOfOutput(type, "r = gelu(x)"),
                HasSubstr("kiln::GeluForHalf("));
  }
  EXPECT_THAT(UnitOfOutput("f16", "s = silu(x)\nr = cast(s, dtype=f16)"),
              for_half);
  EXPECT_THAT(UnitsOf("input x: f16[2,8,16,16]\nparam w: f16[8,8,3,3]\n"
                      "s = silu(x)\nr = conv2d(s, w)\noutput r: f32\n"),
              for_half);
}

// Where an error may grow, or is seen as it is, all of the value counts.
TEST(CallRewritesTest, OtherReadersNeedAllOfTheirValues) {
  const auto exact = HasSubstr("kiln::Silu(");
  EXPECT_THAT(UnitOfOutput("f32", "r = silu(x)"), exact);
  EXPECT_THAT(UnitOfOutput("f32", "s = silu(x)\nr = cast(s, dtype=f16)"),
              exact);
  EXPECT_THAT(UnitOfOutput("f16", "s = silu(x)\nr = cast(s, dtype=bf16)"),
              exact);
  EXPECT_THAT(UnitOfOutput("f16",
                           "s = silu(x)\nt = cast(s, dtype=f16)\n"
                           "r = mul(t, t)"),
              exact);
  EXPECT_THAT(UnitOfOutput("f16", "s = silu(x)\nr = sub(s, y)"), exact);
  EXPECT_THAT(UnitOfOutput("f16", "s = silu(x)\nr = sum(s, dim=1)"), exact);
  EXPECT_THAT(UnitOfOutput("f16", "s = silu(x)\nt = exp(s)\nr = mul(t, s)"),
              exact);
  EXPECT_THAT(UnitOfOutput("f16",
                           "s = silu(x)\nl = logsumexp(s, dim=1, "
                           "keepdim=true)\nr = mul(s, l)"),
              exact);
}

TEST(CallRewritesTest, NaNBoundsStay) {
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
    {"t = tanh(x)\nr = logsumexp(t, dim=1)", 3.0},
};

// Each chain as it is, then with every range unknown.
std::vector<Schedule> BothWays(const std::vector<ElementwiseCase>& cases) {
  std::vector<Schedule> schedules;
  for (const ElementwiseCase& test : cases) {
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

TEST(CallRewritesTest, ExactRewritesGiveTheSameBits) {
  std::vector<ElementwiseCase> cases;
  for (const char* lines : kExactChains)
    cases.push_back(ElementwiseCaseOf(lines, {"r"}));
  const HostKernels kernels(BothWays(cases));
  const std::vector<float> x = EdgeValues(1);
  const std::vector<float> y = EdgeValues(2);
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::vector<float> with =
        OutputsOf(kernels, 2 * i, cases[i].plan, x, y)[0];
    const std::vector<float> without =
        OutputsOf(kernels, 2 * i + 1, cases[i].plan, x, y)[0];
    for (size_t k = 0; k < kCaseElements; ++k) {
      ASSERT_TRUE(AreSame(with[k], without[k]))
          << cases[i].text << x[k] << ": " << with[k] << ", not " << without[k];
    }
  }
}

double UlpAt(float value) {
  const int exponent = std::ilogb(std::max(std::fabs(value), 0x1p-126f));
  return std::ldexp(1.0, exponent - 23);
}

TEST(CallRewritesTest, OtherFormulasAreAsExact) {
  std::vector<ElementwiseCase> cases;
  for (const NearChain& chain : kNearChains) {
    cases.push_back(ElementwiseCaseOf(chain.lines, {"r"}));
  }
  const HostKernels kernels(BothWays(cases));
  const std::vector<float> x = EdgeValues(3);
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::vector<float> with =
        OutputsOf(kernels, 2 * i, cases[i].plan, x, x)[0];
    const std::vector<float> without =
        OutputsOf(kernels, 2 * i + 1, cases[i].plan, x, x)[0];
    for (size_t k = 0; k < kCaseElements; ++k) {
      if (AreSame(with[k], without[k])) continue;
      ASSERT_FALSE(std::isnan(with[k]) || std::isnan(without[k]))
          << cases[i].text << x[k];
      ASSERT_LE(std::fabs(double{with[k]} - without[k]) / UlpAt(without[k]),
                kNearChains[i].max_ulp)
          << cases[i].text << x[k];
    }
  }
}

}  // namespace
}  // namespace kiln
