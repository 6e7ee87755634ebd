// Which softmaxes become a part of a convolution's kernel, and how results go
// to memory. Prevents that one is computed of other values than its own, or
// that a value which somebody else needs is never stored.
#include "jit/compile/conv_softmax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "jit/compile/kernel_spec.h"
#include "jit/compile/specialize.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kConv =
    "input x: f32[2,8,34,34]\nparam w: f32[64,8,3,3]\nparam b: f32[64]\n"
    "c = conv2d(x, w, b)\n";

std::vector<std::string> ComputingSymbols(const std::string& text,
                                          const Target& target = kH100) {
  const Schedule schedule = Fastest(text, target);
  std::vector<std::string> symbols;
  for (const Kernel& kernel : schedule.kernels) {
    if (!kernel.computes()) continue;
    symbols.push_back(MakeKernelSpec(schedule, kernel).entries[0].symbol);
  }
  return symbols;
}

std::string LastUnitOf(const std::string& text) {
  return LastUnitOf(Fastest(text));
}

TEST(ConvSoftmaxTest, BelongsToTheKernelOfTheConvolution) {
  const std::string text = kConv + "r = relu(c)\ny = softmax(r, dim=1)\n";
  for (const Target& target : {kH100, kA100}) {
    EXPECT_THAT(ComputingSymbols(text + "output y\n", target),
                ElementsAre("kiln_conv_softmax"));
  }
  EXPECT_EQ(Fastest(text + "output y\n").workspace_bytes, 0);
}

TEST(ConvSoftmaxTest, BehindANormTheConvolutionIsComputedAgain) {
  EXPECT_THAT(
      ComputingSymbols(kConv + "n = group_norm(c, num_groups=16)\nt = tanh(n)\n"
                               "a = add(t, c)\ny = softmax(a, dim=1)\n"
                               "output y\n"),
      ElementsAre("kiln_conv_statistics", "kiln_conv_softmax"));
}

TEST(ConvSoftmaxTest, WhatFollowsIsComputedOnItsShares) {
  const std::string unit =
      LastUnitOf("param s: f32[64,1,1]\n" + kConv +
                 "y = softmax(c, dim=1)\nz = mul(y, s)\noutput z\n");
  EXPECT_THAT(unit, AllOf(HasSubstr("kTail = kiln::Tail::kSoftmax"),
                          HasSubstr("float v1, bool inside)"),
                          HasSubstr("v2 = kiln::Mul(v1, i3)")));
}

// Its power is in the element's place by then.
TEST(ConvSoftmaxTest, NotWhereAnElementIsNeededBesideItsShare) {
  EXPECT_THAT(ComputingSymbols(kConv + "y = softmax(c, dim=1)\nz = mul(y, c)\n"
                                       "output z\n"),
              Not(testing::Contains("kiln_conv_softmax")));
  EXPECT_THAT(ComputingSymbols(kConv + "n = group_norm(c, num_groups=16)\n"
                                       "y = softmax(n, dim=1)\nz = add(y, c)\n"
                                       "output z\n"),
              Not(testing::Contains("kiln_conv_softmax")));
  EXPECT_THAT(
      ComputingSymbols(kConv + "r = relu(c)\ny = softmax(r, dim=1)\n"
                               "z = mean(r, dim=[2,3])\noutput y\noutput z\n"),
      Not(testing::Contains("kiln_conv_softmax")));
}

TEST(ConvSoftmaxTest, NotOverOtherAxes) {
  for (const std::string dim : {"0", "2", "3"}) {
    EXPECT_THAT(
        ComputingSymbols(kConv + "y = softmax(c, dim=" + dim + ")\noutput y\n"),
        Not(testing::Contains("kiln_conv_softmax")));
  }
}

// The rest of the plan is fused as if there were no softmax.
TEST(ConvSoftmaxTest, NotOfMoreChannelsThanABlockHolds) {
  EXPECT_THAT(
      ComputingSymbols("input x: f32[20,8,34,34]\nparam w: f32[300,8,1,1]\n"
                       "c = conv2d(x, w)\nr = relu(c)\ny = softmax(r, dim=1)\n"
                       "output y\n"),
      ElementsAre("kiln_conv", "kiln_row_warp_chain"));
}

// An output is stored where its elements are computed.
TEST(ConvSoftmaxTest, WhatItIsTakenOfMayBeAnOutput) {
  const std::string text =
      kConv + "y = softmax(c, dim=1)\noutput y\noutput c\n";
  EXPECT_THAT(ComputingSymbols(text), ElementsAre("kiln_conv_softmax"));
  EXPECT_EQ(Fastest(text).kernels.back().stores.size(), 2u);
}

std::string Store(const std::string& width, const std::string& rest) {
  return "input x: f32[2,16,40," + width +
         "]\nparam w: f32[24,16,1,1]\nparam v: f32[16,24,2,2]\n"
         "input z: f32[2,24,40," +
         width + "]\n" + rest + "output y\n";
}

// Eight pixels side by side, which registers have, are then no whole sector.
TEST(ConvSoftmaxTest, ResultsOfOddWidthsGoThroughSharedMemory) {
  const auto stages = HasSubstr("kStagesResults = true");
  const std::string relu = "c = conv2d(x, w)\ny = relu(c)\n";
  EXPECT_THAT(LastUnitOf(Store("57", relu)), stages);
  EXPECT_THAT(LastUnitOf(Store("56", relu)), Not(stages));
  EXPECT_THAT(LastUnitOf(Store("57",
                               "c = conv2d(x, w)\na = add(c, z)\n"
                               "y = relu(a)\n")),
              Not(stages));
  EXPECT_THAT(LastUnitOf(Store("40",
                               "c = conv_transpose2d(x, v, stride=2)\n"
                               "y = relu(c)\n")),
              stages);
}

}  // namespace
}  // namespace kiln
