// What of its windows a pooling asks for once it stands in front of a
// normalisation.
#include "jit/compile/commute_pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fmt/format.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A plan whose group_norm, with weight g, goes through `ops` to a pooling of p.
std::string PooledAfter(const std::string& ops,
                        const std::string& pooling = "max_pool2d") {
  return fmt::format(R"(
input x: f32[2,8,16,16]
param w: f32[16,8,3,3]
param g: f32[16]
param b: f32[16]
param s: f32[16,1,1]
param i: f32[16,14,14]
c = conv2d(x, w)
n = group_norm(c, g, b, num_groups=4)
{}
y = {}(p, kernel_size=2)
output y
)",
                     ops, pooling);
}

// The operands of the moved pooling behind its input: its sign, then how many
// elements each tensor has whose signs count; empty where it was not moved.
std::vector<std::string> SignsOf(const std::string& ops,
                                 const std::string& pooling = "max_pool2d") {
  const LoweredPlan plan = CommutePooling(LoweredOf(PooledAfter(ops, pooling)));
  std::vector<std::string> signs;
  for (const Node& node : plan.nodes) {
    if (!IsEarlyPooling(node)) continue;
    for (size_t k = 1; k < node.operands.size(); ++k) {
      const float* constant = std::get_if<float>(&node.operands[k]);
      const int value = ValueOf(node.operands[k]);
      signs.push_back(
          constant != nullptr
              ? fmt::format("{}", *constant)
              : fmt::format("{} of {}",
                            NumElements(plan.values[value].desc.dims),
                            plan.values[value].desc.dims.size()));
    }
  }
  return signs;
}

TEST(CommutePoolingTest, TheNormsWeightAndFactorsDecide) {
  EXPECT_THAT(SignsOf("p = relu(n)"), ElementsAre("1", "16 of 1"));
  EXPECT_THAT(SignsOf("p = mul(n, s)"), ElementsAre("1", "16 of 1", "16 of 3"));
  EXPECT_THAT(SignsOf("m = mul(s, n)\nt = tanh(m)\np = add(t, s)"),
              ElementsAre("1", "16 of 1", "16 of 3"));
}

TEST(CommutePoolingTest, WhatFallsTurnsTheSign) {
  EXPECT_THAT(SignsOf("p = neg(n)"), ElementsAre("-1", "16 of 1"));
  EXPECT_THAT(SignsOf("p = mul(n, -2.0)"), ElementsAre("-1", "16 of 1"));
  EXPECT_THAT(SignsOf("p = mul(n, 2.0)"), ElementsAre("1", "16 of 1"));
  EXPECT_THAT(SignsOf("p = sub(s, n)"), ElementsAre("-1", "16 of 1"));
  EXPECT_THAT(SignsOf("p = sub(n, s)"), ElementsAre("1", "16 of 1"));
  EXPECT_THAT(SignsOf("a = neg(n)\nq = sub(s, a)\np = mul(q, -1.0)"),
              ElementsAre("-1", "16 of 1"));
}

TEST(CommutePoolingTest, APoolingStaysWhereTheSignIsNotKnownBefore) {
  EXPECT_THAT(SignsOf("p = gelu(n)"), IsEmpty());
  // The window's largest value would hide the NaN of a negative one.
  EXPECT_THAT(SignsOf("p = sqrt(n)"), IsEmpty());
  EXPECT_THAT(SignsOf("p = mul(n, i)"), IsEmpty());
  // So it would that of an infinity.
  EXPECT_THAT(SignsOf("p = mul(n, inf)"), IsEmpty());
  EXPECT_THAT(SignsOf("p = mul(n, -0.0)"), IsEmpty());
  EXPECT_THAT(SignsOf("p = leaky_relu(n, negative_slope=0)"), IsEmpty());
  EXPECT_THAT(SignsOf("p = leaky_relu(n, negative_slope=inf)"), IsEmpty());
  // The convolution's kernel cannot read what another computes.
  EXPECT_THAT(SignsOf("e = exp(s)\np = mul(n, e)"), IsEmpty());
}

TEST(CommutePoolingTest, AMeanIsThatOfWhatAffineOpsTakeWhateverTheirSigns) {
  const auto moved = ElementsAre("1");
  EXPECT_THAT(SignsOf("p = mul(n, s)", "avg_pool2d"), moved);
  EXPECT_THAT(
      SignsOf("a = neg(n)\nq = sub(s, a)\np = mul(q, -1.0)", "avg_pool2d"),
      moved);
  EXPECT_THAT(SignsOf("e = exp(s)\np = mul(n, e)", "avg_pool2d"), moved);
}

// Windows with a border, of which another number is taken, or that end behind
// the image and so have fewer elements than their sum is divided by.
TEST(CommutePoolingTest, AMeanOfOtherWindowsStays) {
  for (const std::string windows :
       {"kernel_size=2, padding=1", "kernel_size=2, divisor_override=3",
        "kernel_size=3, stride=2, ceil_mode=true, divisor_override=9"}) {
    std::string text = PooledAfter("p = neg(n)", "avg_pool2d");
    text.replace(text.find("kernel_size=2"), 13, windows);
    const LoweredPlan plan = LoweredOf(text);
    EXPECT_EQ(CommutePooling(plan).values.size(), plan.values.size())
        << windows;
  }
}

// Pooled, the operand that has one channel would still have one.
TEST(CommutePoolingTest, APoolingStaysBehindWhatHasMoreChannels) {
  for (const char* pooling : {"max_pool2d", "avg_pool2d"}) {
    const LoweredPlan plan = LoweredOf(fmt::format(
        R"(
input x: f32[2,3,16,16]
param w: f32[1,3,3,3]
param s: f32[8,1,1]
c = conv2d(x, w)
n = group_norm(c, num_groups=1)
m = mul(n, s)
y = {}(m, kernel_size=2)
output y
)",
        pooling));
    EXPECT_EQ(CommutePooling(plan).values.size(), plan.values.size());
  }
}

// Zeros that pad a mean are not what the norm makes of zeros; they are no
// matter to the largest.
TEST(CommutePoolingTest, PaddingIsForTheLargestAlone) {
  for (const auto& [pooling, moves] :
       {std::pair("max_pool2d", true), {"avg_pool2d", false}}) {
    std::string text = PooledAfter("p = mul(n, 2.0)", pooling);
    text.replace(text.find("kernel_size=2"), 13,
                 "kernel_size=3, stride=2, padding=1");
    const LoweredPlan plan = CommutePooling(LoweredOf(text));
    EXPECT_EQ(std::any_of(plan.nodes.begin(), plan.nodes.end(), IsEarlyPooling),
              moves);
  }
}

// The first pooling is of a norm of the input.
TEST(CommutePoolingTest, APoolingOfAConvolutionMoves) {
  const LoweredPlan plan = CommutePooling(LoweredOf(R"(
input x: f32[2,8,32,32]
param w: f32[16,8,3,3]
a = group_norm(x, num_groups=4)
p = avg_pool2d(a, kernel_size=2)
c = conv2d(p, w)
n = group_norm(c, num_groups=4)
y = max_pool2d(n, kernel_size=2)
output y
)"));
  std::vector<OpKind> moved;
  for (const Node& node : plan.nodes) {
    if (IsEarlyPooling(node)) moved.push_back(node.op);
  }
  EXPECT_THAT(moved, ElementsAre(OpKind::kMaxPool2d));
}

Schedule OfPooledNorm(const std::string& x, const std::string& w,
                      const std::string& conv, const std::string& windows,
                      int rank = 0) {
  return Fastest(fmt::format(R"(
input x: f16[{}]
param w: f16[{}]
c = conv2d(x, w, {})
n = group_norm(c, num_groups=32)
r = relu(n)
y = max_pool2d(r, {})
output y
)",
                             x, w, conv, windows),
                 kH100, {.conv = rank});
}

bool PoolsEarly(const Schedule& schedule) {
  return std::any_of(
      schedule.kernels.begin(), schedule.kernels.end(),
      [](const Kernel& kernel) { return kernel.group.early_pooling >= 0; });
}

// Of windows that overlap, what two tiles share is computed by both.
TEST(CommutePoolingTest, WindowsThatOverlapArePooledLaterWhereThatIsFaster) {
  const char* const x = "8,128,64,64";
  const char* const w = "256,128,3,3";
  EXPECT_TRUE(PoolsEarly(OfPooledNorm(x, w, "padding=1", "kernel_size=2")));
  EXPECT_FALSE(
      PoolsEarly(OfPooledNorm(x, w, "padding=1", "kernel_size=2, stride=1")));
  EXPECT_TRUE(
      PoolsEarly(OfPooledNorm("32,3,224,224", "64,3,7,7", "stride=2, padding=3",
                              "kernel_size=3, stride=2, padding=1")));
}

// What else a plan computes is of no account.
TEST(CommutePoolingTest, OtherConvolutionsDoNotHideWhatIsSaved) {
  EXPECT_FALSE(PoolsEarly(Fastest(R"(
input x: f16[8,128,64,64]
param w: f16[256,128,3,3]
input z: f16[32,256,128,128]
param v: f16[256,256,3,3]
c = conv2d(x, w, padding=1)
n = group_norm(c, num_groups=32)
r = relu(n)
y = max_pool2d(r, kernel_size=2, stride=1)
d = conv2d(z, v, padding=1)
output y
output d
)")));
}

// A kernel without the statistics does not know which extreme decides.
TEST(CommutePoolingTest, NoConvolutionPoolsEarlyWithoutStatistics) {
  for (int rank = 0; rank < 12; ++rank) {
    const Schedule schedule =
        OfPooledNorm("4,3,224,224", "64,3,7,7", "stride=2, padding=3",
                     "kernel_size=3, stride=2, padding=1", rank);
    for (const Kernel& kernel : schedule.kernels) {
      const int tail = kernel.group.tail;
      EXPECT_FALSE(tail >= 0 && IsEarlyPooling(schedule.lowered.nodes[tail]))
          << rank;
    }
  }
}

TEST(CommutePoolingTest, AMeanStaysBehindOtherOps) {
  for (const std::string ops :
       {"p = relu(n)", "p = mul(n, inf)", "p = mul(n, i)", "p = mul(n, n)",
        "p = minimum(n, s)", "t = tanh(n)\np = add(t, s)"}) {
    EXPECT_THAT(SignsOf(ops, "avg_pool2d"), IsEmpty()) << ops;
  }
}

}  // namespace
}  // namespace kiln
