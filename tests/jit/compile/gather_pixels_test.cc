// Convolutions that have a single pixel of each image for their result, where
// no kernel takes rows as they lie (linear_tile_test.cc).
// Prevents that a linear layer runs as thousands of tiles of one pixel, sixty
// times slower.
#include "jit/compile/gather_pixels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fmt/format.h"
#include "jit/compile/schedule_rewrites.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Linear(int images, int outputs, const std::string& options = "",
                   int size = 1) {
  return fmt::format(
      "input x: f32[{0},256,{3},{3}]\nparam w: f32[{1},256,{3},{3}]\n"
      "c = conv2d(x, w{2})\ny = gelu(c)\noutput y\n",
      images, outputs, options, size);
}

TEST(GatherPixelsTest, ALinearLayerIsOneImage) {
  const std::vector<std::string> files =
      SourceFilesOf(Linear(1000, 512), kA100);
  EXPECT_EQ(files.front(), "turn.cu");
  EXPECT_EQ(files.back(), "turn.cu");
  const Schedule schedule = Fastest(Linear(1000, 512), kA100);
  EXPECT_GT(schedule.prepared_bytes, 0) << "weights are packed once";
}

// Of rows of 256: w, another layer, and what stands between and behind.
std::string PerceptronOfRows(int images, const std::string& between,
                             const std::string& behind) {
  return fmt::format(
      "input x: f32[{0},256,1,1]\ninput z: f32[{0},256,1,1]\n"
      "param v: f32[512,256,1,1]\nparam w: f32[256,512,1,1]\n"
      "param s: f32[512,1,1]\nparam m: f32[512]\nparam var: f32[512]\n"
      "a = conv2d(x, v)\n{1}c = conv2d(h, w)\n{2}\n",
      images, between, behind);
}

int CountTurns(const std::string& text) {
  const std::vector<std::string> files = SourceFilesOf(text, kA100);
  return static_cast<int>(std::count(files.begin(), files.end(), "turn.cu"));
}

TEST(GatherPixelsTest, APerceptronIsTurnedInFrontAndBehind) {
  for (const char* between : {"h = relu(a)\n", "b = mul(a, s)\nh = gelu(b)\n",
                              "b = batch_norm(a, m, var)\nh = relu(b)\n"}) {
    EXPECT_EQ(CountTurns(PerceptronOfRows(1024, between, "output c")), 2)
        << between;
  }
  EXPECT_EQ(CountTurns(PerceptronOfRows(1024, "h = relu(a)\n",
                                        "y = add(c, x)\noutput y")),
            2)
      << "x is turned already";
  EXPECT_EQ(CountTurns(PerceptronOfRows(1024, "h = relu(a)\n",
                                        "y = add(c, z)\noutput y")),
            2)
      << "z is read where results are turned back";
  EXPECT_EQ(
      CountTurns(PerceptronOfRows(1024, "h = relu(a)\n", "output c\noutput a")),
      3)
      << "a is wanted, too";
}

TEST(GatherPixelsTest, WhatStandsBehindTheLastImageIsNotComputed) {
  EXPECT_EQ(CountTurns(PerceptronOfRows(1000, "h = relu(a)\n", "output c")), 2);
  EXPECT_EQ(CountTurns(PerceptronOfRows(1001, "h = relu(a)\n", "output c")), 4)
      << "no rows of whole accesses";
}

TEST(GatherPixelsTest, AFilterThatALayerMakesIsTurnedBack) {
  EXPECT_EQ(CountTurns("input z: f32[192,40,1,1]\ninput x: f32[192,136,1,1]\n"
                       "param p: f32[136,40,1,1]\nw = conv2d(z, p)\n"
                       "r = relu(w)\ny = conv2d(x, r)\noutput y\noutput r\n"),
            4);
}

TEST(GatherPixelsTest, LayersOfOneInputShareIt) {
  EXPECT_EQ(CountTurns("input x: f32[1024,256,1,1]\n"
                       "param v: f32[256,256,1,1]\nparam w: f32[256,256,1,1]\n"
                       "a = conv2d(x, v)\nb = sigmoid(a)\nc = conv2d(x, w)\n"
                       "y = mul(b, c)\noutput y\n"),
            2);
}

TEST(GatherPixelsTest, SoIsAFilterAsLargeAsTheImage) {
  EXPECT_THAT(SourceFilesOf(Linear(500, 512, "", 7), kA100),
              Contains("turn.cu"));
  EXPECT_THAT(SourceFilesOf(Linear(500, 512, ", stride=3", 7), kA100),
              Contains("turn.cu"));
}

TEST(GatherPixelsTest, LeavesOthersAsTheyAre) {
  EXPECT_THAT(SourceFilesOf(Linear(32, 256)), Not(Contains("turn.cu")));
  EXPECT_THAT(SourceFilesOf(Linear(1, 20000)), Not(Contains("turn.cu")));
  EXPECT_THAT(SourceFilesOf(Linear(500, 512, ", padding=1", 3)),
              Not(Contains("turn.cu")));
  EXPECT_THAT(SourceFilesOf(Linear(500, 512), Target{"sm_75", 40}),
              Not(Contains("turn.cu")));
}

// A generator's first layer.
std::string OfLatents(const std::string& options = "", int size = 1,
                      const std::string& bias = "") {
  return fmt::format(
      "input x: f16[128,100,{1},{1}]\nparam w: f16[100,512,4,4]\n"
      "param b: f16[512]\nt = conv_transpose2d(x, w{2}{0})\n"
      "y = relu(t)\noutput y\n",
      options, size, bias);
}

TEST(GatherPixelsTest, SoIsATransposedFilterOfSinglePixels) {
  const std::vector<std::string> files = SourceFilesOf(OfLatents());
  EXPECT_THAT(files, ElementsAre("turn.cu", "pack_halves.cu", "conv_wgmma.cu",
                                 "turn.cu"));
  EXPECT_EQ(SourceFilesOf(OfLatents(", stride=3")), files);
  EXPECT_EQ(SourceFilesOf(OfLatents("", 1, ", b")), files) << "with a bias";
}

TEST(GatherPixelsTest, LeavesOtherTransposedConvolutions) {
  EXPECT_THAT(SourceFilesOf(OfLatents("", 2)), Not(Contains("turn.cu")));
  for (const char* options :
       {", padding=1", ", stride=2, output_padding=1", ", dilation=2"}) {
    EXPECT_THAT(SourceFilesOf(OfLatents(options)), Not(Contains("turn.cu")))
        << options;
  }
}

// Not all of the filter, or not side by side, though as large.
TEST(GatherPixelsTest, LeavesResultsThatAreAsLargeAsTheFilter) {
  for (const char* options :
       {", stride=3, padding=1, output_padding=2", ", padding=1, dilation=2"}) {
    EXPECT_THAT(SourceFilesOf(fmt::format(
                    "input x: f16[128,100,1,1]\nparam w: f16[100,512,3,3]\n"
                    "y = conv_transpose2d(x, w{})\noutput y\n",
                    options)),
                Not(Contains("turn.cu")))
        << options;
  }
}

TEST(GatherPixelsTest, ExplainSaysSo) {
  const CanonicalPlan plan = *Canonicalize(*ParsePlanText(Linear(1000, 512)));
  EXPECT_THAT(RewritesOf(plan, MakeSchedules(plan, kA100).front()),
              Contains(HasSubstr("i0_gathered = turn(i0)")));
}

}  // namespace
}  // namespace kiln
