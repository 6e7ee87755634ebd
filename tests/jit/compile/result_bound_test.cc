// How large results can be, by the ops behind a convolution. Prevents scales by
// which finite results would become infinite, and ops whose bound nobody knows.
#include "jit/compile/result_bound.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "jit/compile/value_ranges.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

// Of ops from the result c of a convolution to y, a sign each and a constant if
// there is one; "none" where there is no bound.
std::string StepsOf(const std::string& ops, const std::string& bias = "") {
  LoweredPlan plan = LoweredOf(fmt::format(
      "input x: f32[2,8,4,4]\ninput z: f32[2,16,4,4]\n"
      "param w: f32[16,8,1,1]\nparam b: f32[16]\nparam s: f32[16,1,1]\n"
      "param r: f32[4]\nparam m: f32[16]\nparam q: f32[16]\n"
      "c = conv2d(x, w{})\n{}\noutput y\n",
      bias, ops));
  std::vector<int> epilogue;
  int conv = -1;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.nodes[i].IsConvolution()) {
      conv = static_cast<int>(i);
    } else if (conv >= 0) {
      epilogue.push_back(static_cast<int>(i));
    }
  }
  FindRanges(&plan);
  const auto steps = BoundSteps(plan, plan.nodes[conv], epilogue);
  if (!steps) return "none";
  std::string text;
  for (const BoundStep& step : *steps) {
    constexpr char kLetters[] = {'*', '+', '<', '>', 'g', 'l', 'f', 'w', 'n'};
    text += kLetters[static_cast<int>(step.kind)];
    const float* const constant = std::get_if<float>(&step.number);
    if (constant != nullptr) text += fmt::format("{}", *constant);
  }
  return text;
}

TEST(ResultBoundTest, OpsOfOneOperandHaveAStep) {
  EXPECT_EQ(StepsOf("y = relu(c)", ", b"), "+>0");
  for (const char* op : {"gelu", "silu", "mish", "hardswish"}) {
    EXPECT_EQ(StepsOf(fmt::format("y = {}(c)", op)), "g0.376") << op;
  }
  EXPECT_EQ(StepsOf("y = elu(c, alpha=0.5)"), "g0.5");
  EXPECT_EQ(StepsOf("y = leaky_relu(c, negative_slope=0.25)"), "l0.25");
  EXPECT_EQ(StepsOf("y = leaky_relu(c, negative_slope=-3)"), "f3");
  EXPECT_EQ(StepsOf("y = clamp(c, min=-1, max=2)"), ">-1<2");
  EXPECT_EQ(StepsOf("y = clamp(c, max=2)"), "<2");
  EXPECT_EQ(StepsOf("y = neg(c)"), "*-1");
  EXPECT_EQ(StepsOf("y = abs(c)"), "f1");
}

TEST(ResultBoundTest, OthersOfConstantsAndChannels) {
  EXPECT_EQ(StepsOf("y = add(c, s)"), "+");
  EXPECT_EQ(StepsOf("y = mul(-2.5, c)"), "*-2.5");
  EXPECT_EQ(StepsOf("y = div(c, 4.0)"), "*0.25");
  EXPECT_EQ(StepsOf("y = sub(1.5, c)"), "*-1+1.5");
  EXPECT_EQ(StepsOf("y = sub(c, s)"), "*-1+*-1");
  EXPECT_EQ(StepsOf("y = maximum(c, s)"), ">");
  EXPECT_EQ(StepsOf("y = minimum(c, 3.0)"), "<3");
  EXPECT_EQ(StepsOf("y = batch_norm(c, m, q)"), "n");
}

// Finite numbers made of infinities, which are as large as a bound that only
// the other side has.
TEST(ResultBoundTest, WhatMixesSidesBehindABoundHasNone) {
  EXPECT_EQ(StepsOf("y = elu(c, alpha=2)"), "none");
  for (const char* last : {"abs(t)", "mul(t, s)", "batch_norm(t, m, q)",
                           "leaky_relu(t, negative_slope=2)"}) {
    EXPECT_EQ(StepsOf(fmt::format("t = minimum(c, 3)\ny = {}", last)), "none")
        << last;
    EXPECT_NE(StepsOf(fmt::format("t = relu(c)\ny = {}", last)), "none")
        << last;
  }
}

TEST(ResultBoundTest, AnOpsOwnRangeIsEnough) {
  EXPECT_EQ(StepsOf("y = tanh(c)", ", b"), "w");
  EXPECT_EQ(StepsOf("d = exp(c)\ny = tanh(d)"), "w");
  EXPECT_EQ(StepsOf("d = sigmoid(c)\ny = mul(d, s)"), "w*");
  EXPECT_EQ(StepsOf("d = add(c, z)\ny = sigmoid(d)"), "w");
}

TEST(ResultBoundTest, OthersHaveNone) {
  EXPECT_EQ(StepsOf("y = exp(c)"), "none");
  EXPECT_EQ(StepsOf("y = mul(c, c)"), "none");
  EXPECT_EQ(StepsOf("y = div(1.0, c)"), "none");
  EXPECT_EQ(StepsOf("y = add(c, z)"), "none") << "as large as the result";
  EXPECT_EQ(StepsOf("y = add(c, r)"), "none") << "a number for each column";
  EXPECT_EQ(StepsOf("t = relu(c)\nu = mul(c, 2.0)\ny = add(t, u)"), "none")
      << "not one behind the other";
}

}  // namespace
}  // namespace kiln
