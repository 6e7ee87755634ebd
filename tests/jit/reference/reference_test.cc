#include "jit/plan/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "jit/plan/plan_text.h"
#include "tests/jit/reference/evaluate.h"

namespace kiln {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Plan Parsed(std::string_view text) {
  const auto plan = ParsePlanText(text);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : Plan();
}

Values Unary(const char* call, const Values& x) {
  return Evaluate("input x: f32[" + std::to_string(x.size()) +
                      "]\ny = " + call + "\noutput y\n",
                  {x});
}

void ExpectSame(const Values& actual, const Values& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(actual[i])) << i << ": " << actual[i];
    } else {
      EXPECT_DOUBLE_EQ(actual[i], expected[i]) << i;
    }
  }
}

// Computed by hand from the formulas of docs/ops.md.
TEST(ReferenceTest, UnaryOpsAtHandComputedPoints) {
  const Values x = {-4, -1, 0, 2, 7, kNan, kInf, -kInf};
  ExpectSame(Unary("relu(x)", x), {0, 0, 0, 2, 7, kNan, kInf, 0});
  ExpectSame(Unary("leaky_relu(x, negative_slope=0.5)", x),
             {-2, -0.5, 0, 2, 7, kNan, kInf, -kInf});
  ExpectSame(Unary("hardswish(x)", x),
             {0, -1.0 / 3, 0, 5.0 / 3, 7, kNan, kInf, kNan});
  ExpectSame(Unary("hardsigmoid(x)", x),
             {0, 1.0 / 3, 0.5, 5.0 / 6, 1, kNan, 1, 0});
  ExpectSame(Unary("hardtanh(x)", x), {-1, -1, 0, 1, 1, kNan, 1, -1});
  ExpectSame(Unary("clamp(x, min=-2, max=3)", x),
             {-2, -1, 0, 2, 3, kNan, 3, -2});
  ExpectSame(Unary("clamp(x, min=3, max=-3)", x),
             {-3, -3, -3, -3, -3, kNan, -3, -3});
  ExpectSame(Unary("elu(x, alpha=2)", x),
             {2 * std::expm1(-4), 2 * std::expm1(-1), 0, 2, 7, kNan, kInf, -2});
  ExpectSame(Unary("softplus(x, threshold=1)", x),
             {std::log1p(std::exp(-4)), std::log1p(std::exp(-1)), std::log(2),
              2, 7, kNan, kInf, 0});
  ExpectSame(Unary("sqrt(x)", x),
             {kNan, kNan, 0, std::sqrt(2), std::sqrt(7), kNan, kInf, kNan});
  EXPECT_TRUE(std::signbit(Unary("neg(x)", {0})[0]));
  EXPECT_TRUE(std::signbit(Unary("add(x, -0.0)", {-0.0})[0]));
  EXPECT_FALSE(std::signbit(Unary("add(x, 0.0)", {-0.0})[0]));
}

TEST(ReferenceTest, GeluKeepsItsDigitsFarBelowZero) {
  // mpmath: -10 * Phi(-10), with Phi(-10) = 7.619853024160526e-24.
  EXPECT_NEAR(Unary("gelu(x)", {-10})[0], -7.619853024160526e-23, 1e-36);
}

TEST(ReferenceTest, OutputsAreRoundedOnceToTheirTypes) {
  const Plan plan = Parsed(
      "input x: f32[2]\ny = mul(x, 3)\noutput y: f16\noutput y: bf16\n"
      "output y\n");
  const std::array<float, 2> x = {0.1f, 30000.0f};
  std::array<uint16_t, 2> half = {}, bfloat = {};
  std::array<float, 2> full = {};
  const void* in[] = {x.data()};
  void* out[] = {half.data(), bfloat.data(), full.data()};
  ASSERT_TRUE(EvaluateReference(plan, in, out).ok());
  EXPECT_EQ(half[0], 0x34cd);    // 0x1.334p-2, the f16 nearest 0.3
  EXPECT_EQ(half[1], 0x7c00);    // 90,000 exceeds 65,504
  EXPECT_EQ(bfloat[0], 0x3e9a);  // 0.30078125
  EXPECT_EQ(full[0], static_cast<float>(3.0 * x[0]));
}

TEST(ReferenceTest, CastsRoundBetweenOps) {
  // 2049 is halfway between 2048 and 2050 in f16.
  EXPECT_EQ(Evaluate("input x: f32[1]\nh = cast(x, dtype=f16)\n"
                     "y = sub(x, h)\noutput y\n",
                     {{2049}}),
            Values{1});
}

TEST(ReferenceTest, UnusedInputsMayBeNull) {
  const Plan plan = Parsed(
      "input x: f32[2]\ninput z: f32[2]\na = exp(z)\ny = neg(x)\noutput y\n");
  const std::array<float, 2> x = {1, 2};
  std::array<float, 2> y = {};
  const void* in[] = {x.data(), nullptr};
  void* out[] = {y.data()};
  ASSERT_TRUE(EvaluateReference(plan, in, out).ok());
  EXPECT_EQ(y[1], -2.0f);
}

// A plan that would take the machine's memory must say so before it does.
TEST(ReferenceTest, PlansBeyondTheMemoryLimitAreExhausted) {
  const Plan huge =
      Parsed("input x: f32[1,1,100000,100000]\ny = relu(x)\noutput y\n");
  const void* in[] = {nullptr};
  void* out[] = {nullptr};
  EXPECT_EQ(EvaluateReference(huge, in, out).code(),
            absl::StatusCode::kResourceExhausted);

  // x, a, b, y hold 800 bytes each, two of them at a time.
  const Plan chain = Parsed(
      "input x: f32[100]\na = exp(x)\nb = neg(a)\ny = abs(b)\noutput y\n");
  const std::vector<float> x(100);
  std::vector<float> y(100);
  in[0] = x.data();
  out[0] = y.data();
  EXPECT_TRUE(EvaluateReference(chain, in, out, {}, 1600).ok());
  EXPECT_EQ(EvaluateReference(chain, in, out, {}, 1599).code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(ReferenceTest, CancellationStopsTheEvaluation) {
  const Plan plan = Parsed(
      "input x: f32[8,16,64,64]\nparam w: f32[16,16,3,3]\n"
      "a = conv2d(x, w, padding=1)\ny = conv2d(a, w, padding=1)\noutput y\n");
  const std::vector<float> x(8 * 16 * 64 * 64), w(16 * 16 * 9);
  std::vector<float> y(x.size());
  const void* in[] = {x.data(), w.data()};
  void* out[] = {y.data()};
  int asked = 0;
  const auto later = [&] { return ++asked > 3; };
  EXPECT_EQ(EvaluateReference(plan, in, out, later).code(),
            absl::StatusCode::kCancelled);
  EXPECT_LT(asked, 100);
  EXPECT_EQ(EvaluateReference(plan, in, out, [] { return true; }).code(),
            absl::StatusCode::kCancelled);
  EXPECT_TRUE(EvaluateReference(plan, in, out, [] { return false; }).ok());
}

TEST(ReferenceTest, WrongPlansAndCountsAreInvalid) {
  const Plan plan = Parsed("input x: f32[2]\ny = neg(x)\noutput y\n");
  std::array<float, 2> x = {};
  const void* in[] = {x.data()};
  void* out[] = {x.data()};
  EXPECT_EQ(EvaluateReference(plan, {}, out).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(EvaluateReference(plan, in, {}).code(),
            absl::StatusCode::kInvalidArgument);
  Plan wrong = plan;
  wrong.outputs[0].value.index = 7;
  EXPECT_EQ(EvaluateReference(wrong, in, out).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace kiln
