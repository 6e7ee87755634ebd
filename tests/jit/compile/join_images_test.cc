// Images that lie side by side in front of convolutions of one tap. Prevents
// that a transformer of 197 tokens brings each of its numbers apart, which
// takes half as long again, and that a kernel stores what it makes of joined
// images where other ops look for images that lie apart.
#include "jit/compile/join_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fmt/format.h"
#include "jit/compile/conv_demands.h"
#include "jit/compile/schedule_rewrites.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kTokens = 197;

// y = f(conv2d(gelu(conv2d(x, u)), v)), x: f16[16,channels,1,tokens].
std::string Perceptron(int channels, int tokens = kTokens,
                       const std::string& last = "y = add(c, x)",
                       const std::string& type = "f16") {
  return fmt::format(
      "input x: {0}[16,{1},1,{2}]\nparam u: {0}[{3},{1},1,1]\n"
      "param v: {0}[{1},{3},1,1]\na = conv2d(x, u)\ng = gelu(a)\n"
      "c = conv2d(g, v)\n{4}\noutput y\n",
      type, channels, tokens, 4 * channels, last);
}

// With images side by side where that is predicted to pay or, `always`, where
// it can be.
Schedule JoinedSchedule(const std::string& text, bool always,
                        const Target& target = kH100) {
  return Fastest(text, target, {.images = always ? 1 : 0});
}

std::vector<std::string> JoinedFiles(const std::string& text,
                                     bool always = false,
                                     const Target& target = kH100) {
  return SourceFilesOf(JoinedSchedule(text, always, target));
}

TEST(JoinImagesTest, AChainOfConvolutionsHasOneJoin) {
  EXPECT_THAT(JoinedFiles(Perceptron(512)),
              ElementsAre("join.cu", "pack_halves.cu", "conv_wgmma.cu",
                          "pack_halves.cu", "conv_wgmma.cu"));
  const Schedule schedule = JoinedSchedule(Perceptron(512), false);
  const ConvGeometry& first = *schedule.kernels[2].conv;
  EXPECT_EQ(first.problem.split_pixels, 0) << "its result stays joined";
  EXPECT_EQ(first.problem.output[0], 1);
  const ConvGeometry& last = *schedule.kernels[4].conv;
  EXPECT_EQ(last.problem.split_pixels, kTokens);
  EXPECT_TRUE(last.rounds_sums);
  EXPECT_TRUE(first.takes_lines && last.takes_lines);
}

TEST(JoinImagesTest, OnlyWhereItPays) {
  EXPECT_THAT(JoinedFiles(Perceptron(64)), Not(Contains("join.cu")));
  EXPECT_THAT(JoinedFiles(Perceptron(64), true), Contains("join.cu"));
}

TEST(JoinImagesTest, LeavesOthersAsTheyAre) {
  // Whose rows may begin where accesses do.
  EXPECT_THAT(JoinedFiles(Perceptron(512, 196), true),
              Not(Contains("join.cu")));
  EXPECT_THAT(
      JoinedFiles(Perceptron(512, kTokens, "y = add(c, x)", "f32"), true),
      Not(Contains("join.cu")));
  EXPECT_THAT(JoinedFiles(Perceptron(512), true, {"sm_80", 108}),
              Not(Contains("join.cu")));
}

// What reads another number for each image, the same row for all channels, and
// reductions.
TEST(JoinImagesTest, NotWithWhatKnowsImages) {
  for (const char* last :
       {"y = mul(c, s)\n", "y = mul(c, r)\n", "y = mean(c, dim=[2,3])\n",
        "n = add(c, 1.0)\ny = softmax(n, dim=1)\n"}) {
    const std::string text =
        "input s: f16[16,64,1,1]\ninput r: f16[16,1,1,197]\n" +
        Perceptron(64, kTokens, last);
    const Schedule schedule = JoinedSchedule(text, true);
    for (const Kernel& kernel : schedule.kernels) {
      if (!kernel.conv || kernel.conv->problem.split_pixels == 0) continue;
      EXPECT_LT(kernel.group.tail, 0) << text;
      EXPECT_FALSE(VariesByImage(schedule.lowered, kernel.group.epilogue));
      for (const int node : kernel.group.epilogue) {
        EXPECT_FALSE(schedule.lowered.nodes[node].Reads(1)) << text;  // r
      }
    }
  }
}

// Of results that no tile stores apart, the convolution alone takes its images
// as they are.
TEST(JoinImagesTest, WhatCannotBeStoredApartIsNotJoined) {
  const std::string inputs =
      "input x: f16[16,64,1,197]\nparam u: f16[64,64,1,1]\n"
      "param b: f32[64]\nparam v: f16[64,64,1,1]\n";
  const auto joins = [&](const std::string& body) {
    const std::vector<std::string> files = JoinedFiles(inputs + body, true);
    return std::count(files.begin(), files.end(), "join.cu");
  };
  EXPECT_EQ(joins("y = conv2d(x, u)\noutput y: f32\n"), 0);
  EXPECT_EQ(joins("y = conv2d(x, u, b)\noutput y\n"), 0);
  EXPECT_EQ(joins("y = conv2d(x, u)\noutput y: f16\noutput y: bf16\n"), 0);
  EXPECT_EQ(joins("a = conv2d(x, u)\ny = conv2d(x, v)\noutput a: f32\n"
                  "output y\n"),
            1)
      << "the other one";
}

TEST(JoinImagesTest, TuningTriesWhatWasNotPredictedToPay) {
  const auto tries = [](const std::string& text) {
    const CanonicalPlan plan = *Canonicalize(*ParsePlanText(text));
    const std::vector<Tuning> all = Alternatives(plan, kH100, 8);
    return std::count(all.begin(), all.end(), Tuning{.images = 1});
  };
  EXPECT_EQ(tries(Perceptron(64)), 1);
  EXPECT_EQ(tries(Perceptron(512)), 0) << "it is what is done";
  EXPECT_EQ(tries(Perceptron(64, 196)), 0) << "there is nothing to join";
}

TEST(JoinImagesTest, ExplainSaysSo) {
  const CanonicalPlan plan = *Canonicalize(*ParsePlanText(Perceptron(512)));
  EXPECT_THAT(RewritesOf(plan, MakeSchedules(plan, kH100).front()),
              Contains(HasSubstr("i0_joined = join(i0)")));
}

}  // namespace
}  // namespace kiln
