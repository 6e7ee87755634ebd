// Interval analysis: the arithmetic of ranges, and the ranges of ops over
// their operands' edges. Prevents a range that lacks a value.
#include "jit/compile/value_ranges.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "fmt/format.h"
#include "jit/plan/plan_text.h"

namespace kiln {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();

// The range of the last of some lines, which start from an input x and name
// their result y: "[-1, 1]".
std::string RangeAfter(const std::string& lines) {
  const std::string text = "input x: f32[2,4,6,6]\n" + lines + "\noutput y\n";
  LoweredPlan plan = Lower(*Canonicalize(*ParsePlanText(text)));
  FindRanges(&plan);
  return ToText(plan.values[plan.outputs[0].value.index].range);
}

// The same after a clamp.
std::string RangeWithin(float low, float high, const std::string& call) {
  return RangeAfter(
      fmt::format("v = clamp(x, min={}, max={})\ny = {}", low, high, call));
}

TEST(ValueRangeTest, ZerosHaveSigns) {
  EXPECT_TRUE(IsBelow(-0.0f, 0.0f));
  EXPECT_FALSE(IsBelow(0.0f, -0.0f));
  EXPECT_EQ(ToText(ProductOf({0.0f, 1.0f}, {0.0f, 2.0f})), "[0, 2]");
  EXPECT_EQ(ToText(ProductOf({0.0f, 1.0f}, {-2.0f, 2.0f})), "[-2, 2]");
  EXPECT_EQ(ToText(ProductOf({0.0f, 1.0f}, {-2.0f, -1.0f})), "[-2, -0]");
  EXPECT_EQ(ToText(SumOf({-0.0f, 1.0f}, {-0.0f, 1.0f})), "[-0, 2]");
  EXPECT_EQ(ToText(SumOf({-0.0f, 1.0f}, {0.0f, 1.0f})), "[0, 2]");
  EXPECT_EQ(ToText(AbsoluteOf({-3.0f, 2.0f})), "[0, 3]");
  EXPECT_EQ(ToText(AbsoluteOf({-3.0f, -0.0f})), "[0, 3]");
}

TEST(ValueRangeTest, InfinityTimesZeroIsNoNumber) {
  const ValueRange all;
  EXPECT_EQ(ToText(ProductOf(all, {0.0f, 1.0f})), "[-inf, inf]");
  EXPECT_EQ(ToText(ProductOf({0.0f, kInfinity}, {0.0f, 1.0f})), "[0, inf]");
  EXPECT_EQ(ToText(ProductOf(all, {0.0f, 0.0f})), "[-0, 0]");
  EXPECT_EQ(ToText(SumOf({1.0f, kInfinity}, {-kInfinity, 1.0f})),
            "[-inf, inf]");
}

TEST(ValueRangeTest, RoundingGoesOutward) {
  const ValueRange third = QuotientOf({1.0f, 1.0f}, {3.0f, 3.0f});
  EXPECT_LT(double{third.low}, 1.0 / 3);
  EXPECT_GT(double{third.high}, 1.0 / 3);
  const ValueRange square = ProductOf({0.1f, 0.1f}, {0.1f, 0.1f});
  EXPECT_LT(double{square.low}, double{0.1f} * 0.1f);
  EXPECT_GT(double{square.high}, double{0.1f} * 0.1f);
  const ValueRange least = ProductOf({kTiny, 1.0f}, {kTiny, 1.0f});
  EXPECT_EQ(least.low, 0.0f);
  const ValueRange most = ProductOf({kLargest, kLargest}, {2.0f, 2.0f});
  EXPECT_EQ(most.low, kLargest);
  EXPECT_EQ(most.high, kInfinity);
}

// Where -0 and +0 meet, targets differ in which they answer.
TEST(ValueRangeTest, ABoundIsDeadOnlyIfZerosKeepTheirSigns) {
  EXPECT_TRUE(IsNeverBelow({0.0f, 1.0f}, 0.0f));
  EXPECT_FALSE(IsNeverBelow({-0.0f, 1.0f}, 0.0f));
  EXPECT_FALSE(IsNeverBelow({0.0f, 1.0f}, -0.0f));
  EXPECT_TRUE(IsNeverBelow({kTiny, 1.0f}, -0.0f));
  EXPECT_FALSE(IsNeverAbove({-1.0f, -0.0f}, 0.0f));
  EXPECT_TRUE(IsNeverAbove({-1.0f, -0.0f}, -0.0f));
  EXPECT_TRUE(IsNeverAbove({-1.0f, 1.0f}, 1.0f));
}

TEST(ValueRangesTest, InputsCanBeAnything) {
  EXPECT_EQ(RangeAfter("y = neg(x)"), "[-inf, inf]");
  EXPECT_EQ(RangeAfter("y = group_norm(x, num_groups=2)"), "[-inf, inf]");
}

TEST(ValueRangesTest, FunctionsOfAnything) {
  EXPECT_EQ(RangeAfter("y = relu(x)"), "[0, inf]");
  EXPECT_EQ(RangeAfter("y = tanh(x)"), "[-1, 1]");
  EXPECT_EQ(RangeAfter("y = sigmoid(x)"), "[0, 1]");
  EXPECT_EQ(RangeAfter("y = exp(x)"), "[0, inf]");
  EXPECT_EQ(RangeAfter("y = sqrt(x)"), "[-0, inf]");
  EXPECT_EQ(RangeAfter("y = abs(x)"), "[0, inf]");
  EXPECT_EQ(RangeAfter("y = hardtanh(x)"), "[-1, 1]");
  EXPECT_EQ(RangeAfter("y = clamp(x, max=6.0)"), "[-inf, 6]");
  EXPECT_EQ(RangeAfter("y = clamp(x, min=2.0, max=1.0)"), "[1, 1]");
  EXPECT_EQ(RangeAfter("y = softplus(x)"), "[0, inf]");
  EXPECT_EQ(RangeAfter("y = elu(x)"), "[-1, inf]");
  EXPECT_EQ(RangeAfter("y = silu(x)"), "[-0.2785, inf]");
  EXPECT_EQ(RangeAfter("y = softmax(x, dim=1)"), "[0, 2]");
}

TEST(ValueRangesTest, FunctionsOfBoundedArguments) {
  EXPECT_EQ(RangeWithin(-2, 5, "relu(v)"), "[0, 5]");
  EXPECT_EQ(RangeWithin(-2, 5, "neg(v)"), "[-5, 2]");
  EXPECT_EQ(RangeWithin(-2, 5, "abs(v)"), "[0, 5]");
  EXPECT_EQ(RangeWithin(-2, 5, "leaky_relu(v, negative_slope=0.5)"), "[-1, 5]");
  EXPECT_EQ(RangeWithin(-2, 5, "leaky_relu(v, negative_slope=-4.0)"),
            "[-0, 8]");
  EXPECT_EQ(RangeWithin(-2, 5, "add(v, 1.5)"), "[-0.5, 6.5]");
  EXPECT_EQ(RangeWithin(-2, 5, "sub(1.0, v)"), "[-4, 3]");
  EXPECT_EQ(RangeWithin(-2, 5, "mul(v, v)"), "[-10, 25]");
  EXPECT_EQ(RangeWithin(-2, 5, "div(v, -2.0)"), "[-2.5, 1]");
  EXPECT_EQ(RangeWithin(-2, 5, "minimum(v, 3.0)"), "[-2, 3]");
  EXPECT_EQ(RangeWithin(-2, 5, "cast(v, dtype=f16)"), "[-2, 5]");
  EXPECT_EQ(RangeWithin(0, 70000, "cast(v, dtype=f16)"), "[0, inf]");
  EXPECT_EQ(RangeWithin(1, 4, "silu(v)"), "[0, 4]");
}

TEST(ValueRangesTest, PoolingAndReductions) {
  EXPECT_EQ(RangeWithin(-2, 5, "max_pool2d(v, kernel_size=2)"), "[-2, 5]");
  EXPECT_EQ(RangeWithin(-2, 5, "amax(v, dim=1)"), "[-2, 5]");
  EXPECT_EQ(RangeWithin(1, 5, "sum(v, dim=1)"), "[0, inf]");
  EXPECT_EQ(RangeWithin(-2, 5, "sum(v, dim=1)"), "[-inf, inf]");
  EXPECT_EQ(RangeWithin(-2, 0.5, "mean(v, dim=1)"), "[-2.0039062, 0.50390625]");
  EXPECT_EQ(
      RangeAfter("v = clamp(x, min=1.0, max=5.0)\n"
                 "y = max_pool2d(v, kernel_size=2, padding=1, dilation=4)"),
      "[-inf, 5]");
}

}  // namespace
}  // namespace kiln
