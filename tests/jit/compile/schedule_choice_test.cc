// Which kernels the headline chains become, and the same chains at the shapes
// where another schedule wins: batch 1, tiny images, huge channels, odd sizes,
// small groups. Tiles and team sizes are free to change; the cut is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/schedule.h"
#include "jit/plan/plan_text.h"
#include "tests/jit/compile/chain_plans.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;

// A convolution with 3 x 3 taps, and a chain behind it.
struct Shape {
  std::string input;
  int inputs = 8;
  int outputs = 64;
  int groups = 16;              // of the norm
  std::string attributes = {};  // of the convolution
  std::string grade = "fp32";
};

// conv · norm · tanh · + conv · logsumexp: P2.
std::string ResidualChain(const Shape& shape) {
  return fmt::format(R"(
grade {}
input x: f32{}
param w: f32[{},{},3,3]
conv = conv2d(x, w{})
norm = group_norm(conv, num_groups={})
t = tanh(norm)
r = add(t, conv)
y = logsumexp(r, dim=1, keepdim=true)
output y
)",
                     shape.grade, shape.input, shape.outputs, shape.inputs,
                     shape.attributes, shape.groups);
}

// conv · norm · scale · max_pool · clamp: P3.
std::string PoolChain(const Shape& shape, int window = 4) {
  return fmt::format(R"(
grade {}
input x: f32{}
param w: f32[{},{},3,3]
param s: f32[{},1,1]
conv = conv2d(x, w{})
norm = group_norm(conv, num_groups={})
scaled = mul(norm, s)
pooled = max_pool2d(scaled, kernel_size={})
y = clamp(pooled, min=0.0, max=1.0)
output y
)",
                     shape.grade, shape.input, shape.outputs, shape.inputs,
                     shape.outputs, shape.attributes, shape.groups, window);
}

std::string Norm(const std::string& type, const std::string& dims, int groups) {
  return fmt::format(
      "input x: {}{}\ny = group_norm(x, num_groups={})\noutput y\n", type, dims,
      groups);
}

std::string SoftmaxOf(const std::string& type, const std::string& dims,
                      int dim) {
  return fmt::format("input x: {}{}\ny = softmax(x, dim={})\noutput y\n", type,
                     dims, dim);
}

// The symbol of each kernel's first entry, without "kiln_" and without the
// kernels that pack weights, of which each order of weights has one.
std::vector<std::string> Cut(const std::string& text, const Target& target) {
  const CanonicalPlan plan = *Canonicalize(*ParsePlanText(text));
  const Schedule schedule = MakeSchedules(plan, target).front();
  std::vector<std::string> symbols;
  for (const Kernel& kernel : schedule.kernels) {
    if (!kernel.computes()) continue;
    symbols.push_back(
        MakeKernelSpec(schedule, kernel).entries[0].symbol.substr(5));
  }
  return symbols;
}

const auto kComputedAgain = ElementsAre("conv_statistics", "conv_reduce");
const auto kPooledInFront = ElementsAre("conv_statistics", "pointwise");
const auto kThroughMemory = ElementsAre("conv_statistics", "reduce");
const auto kWithoutTensorCores = ElementsAre("conv2d", "reduce", "reduce");

TEST(ScheduleChoiceTest, TheResidualChainIsComputedAgain) {
  for (const Target& target : {kH100, kA100}) {
    for (const Shape& shape :
         {Shape{"[128,8,128,128]"}, Shape{"[1,8,128,128]"},
          Shape{"[128,8,6,6]"}, Shape{"[3,8,37,53]"},
          Shape{.input = "[16,8,64,64]", .groups = 64},
          Shape{.input = "[16,8,64,64]", .groups = 1},
          Shape{.input = "[16,8,64,64]", .outputs = 60, .groups = 20},
          Shape{.input = "[16,8,64,64]", .attributes = ", stride=2"},
          Shape{.input = "[16,1,64,64]", .inputs = 1, .outputs = 16}}) {
      EXPECT_THAT(Cut(ResidualChain(shape), target), kComputedAgain)
          << shape.input << shape.attributes;
    }
  }
  EXPECT_THAT(Cut(ResidualChain({"[128,8,128,128]"}), kT4),
              kWithoutTensorCores);
}

// 24 · 9 products an element, three times as many where operands are split.
TEST(ScheduleChoiceTest, WhatIsComputedAgainDependsOnTheGrade) {
  Shape shape = {.input = "[16,24,64,64]", .inputs = 24};
  EXPECT_THAT(Cut(ResidualChain(shape), kH100), kThroughMemory);
  shape.grade = "tf32";
  EXPECT_THAT(Cut(ResidualChain(shape), kH100), kComputedAgain);
}

TEST(ScheduleChoiceTest, HugeChannelsGoThroughMemory) {
  for (const Target& target : {kH100, kA100}) {
    EXPECT_THAT(Cut(ResidualChain({.input = "[8,512,14,14]",
                                   .inputs = 512,
                                   .outputs = 512,
                                   .groups = 32,
                                   .attributes = ", padding=1"}),
                    target),
                kThroughMemory);
  }
}

TEST(ScheduleChoiceTest, GroupedConvolutionsHaveNoReductionBehindThem) {
  EXPECT_THAT(Cut(ResidualChain({.input = "[16,8,64,64]",
                                 .inputs = 4,
                                 .attributes = ", groups=2"}),
                  kH100),
              ElementsAre("conv", "reduce", "reduce"));
}

TEST(ScheduleChoiceTest, ThePoolingMovesInFrontOfTheNorm) {
  for (const Shape& shape :
       {Shape{"[128,8,128,128]"}, Shape{"[1,8,128,128]"}, Shape{"[128,8,6,6]"},
        Shape{"[3,8,37,53]"}, Shape{.input = "[16,8,64,64]", .groups = 64},
        Shape{.input = "[16,8,64,64]", .outputs = 60, .groups = 20}}) {
    EXPECT_THAT(Cut(PoolChain(shape), kA100), kPooledInFront) << shape.input;
    EXPECT_THAT(Cut(PoolChain(shape), kH100),
                AnyOf(kPooledInFront, ElementsAre("conv_held")))
        << shape.input;
  }
  // Blocks hold the windows of large batches, not those of a single image.
  EXPECT_THAT(Cut(PoolChain({"[128,8,128,128]"}), kH100),
              ElementsAre("conv_held"));
  EXPECT_THAT(Cut(PoolChain({"[1,8,128,128]"}), kH100), kPooledInFront);
  EXPECT_THAT(Cut(PoolChain({"[16,8,64,64]"}, 3), kH100), kPooledInFront);
  EXPECT_THAT(Cut(PoolChain({"[128,8,128,128]"}), kT4),
              ElementsAre("conv2d", "reduce", "pool2d"));
}

// Windows larger than a tile's share of them: the pooling comes last.
TEST(ScheduleChoiceTest, LargeWindowsStayBehindTheNorm) {
  EXPECT_THAT(Cut(PoolChain({"[16,8,64,64]"}, 16), kH100),
              ElementsAre("conv_statistics", "pool2d"));
}

TEST(ScheduleChoiceTest, TheTransposedChainIsStoredOnce) {
  // With many blocks, they also finish what earlier ones have stored.
  EXPECT_THAT(Cut(TransposedChain(), kH100), ElementsAre("conv_statistics"));
  EXPECT_THAT(Cut(TransposedChain(), kA100),
              ElementsAre("conv_statistics", "pointwise"));
  for (const char* input : {"[1,64,256,256]", "[8,64,64,64]"}) {
    EXPECT_THAT(Cut(TransposedChain(input), kA100),
                ElementsAre("conv_statistics", "pointwise"));
    EXPECT_THAT(Cut(TransposedChain(input), kT4),
                ::testing::Contains("conv_transpose2d"));
  }
  // Images that the chip can hold are not stored before the norm.
  EXPECT_THAT(Cut(TransposedChain("[8,64,64,64]"), kH100),
              ElementsAre("conv_held"));
  EXPECT_THAT(Cut(TransposedChain("[1,64,256,256]"), kH100),
              ElementsAre("conv_statistics", "pointwise"));
}

TEST(ScheduleChoiceTest, NormsOfLargeImagesAreSharedByTheGrid) {
  for (const char* dims : {"[112,64,512,512]", "[1,64,512,512]"}) {
    EXPECT_THAT(Cut(Norm("f32", dims, 8), kH100), ElementsAre("row_team"));
    EXPECT_THAT(Cut(Norm("f32", dims, 8), kA100),
                ElementsAre("reduce", "pointwise"));
  }
}

TEST(ScheduleChoiceTest, NormsOfSmallRowsStayInRegisters) {
  for (const Target& target : {kH100, kA100, kT4}) {
    for (const std::string& plan :
         {Norm("f16", "[32,2048,7,7]", 32), Norm("f32", "[1,4096,4,4]", 32),
          Norm("f32", "[3,6,37,53]", 2)}) {
      EXPECT_THAT(Cut(plan, target), ElementsAre("row_warp")) << plan;
    }
    for (const std::string& plan :
         {Norm("f32", "[32,512,7,7]", 32), Norm("f32", "[2,8,1,1]", 8),
          Norm("f32", "[1,3,8,8]", 3)}) {
      EXPECT_THAT(Cut(plan, target), ElementsAre("row_warp")) << plan;
    }
  }
}

TEST(ScheduleChoiceTest, SoftmaxOfNeighboursStaysOnTheChip) {
  for (const Target& target : {kH100, kA100, kT4}) {
    EXPECT_THAT(Cut(SoftmaxOf("f32", "[4096,4096]", 1), target),
                ElementsAre("row_warp"));
    EXPECT_THAT(Cut(SoftmaxOf("f16", "[2,3]", 1), target),
                ElementsAre("row_warp"));
  }
  EXPECT_THAT(Cut(SoftmaxOf("f32", "[4096,20000]", 1), kH100),
              ElementsAre("row_block"));
  // 201 kB of a row: in a cluster, or not at all.
  EXPECT_THAT(Cut(SoftmaxOf("f32", "[2048,50257]", 1), kH100),
              ElementsAre("row_block"));
  EXPECT_THAT(Cut(SoftmaxOf("f32", "[2048,50257]", 1), kT4),
              ElementsAre("reduce", "pointwise"));
}

// 32 rows leave most multiprocessors idle, so clusters share them; behind
// another kernel clusters cost more, and reading the rows twice less.
TEST(ScheduleChoiceTest, FewLongRowsAreSharedByClustersIfTheyComeFirst) {
  const std::string rows = "f16[4,24,128,128]";
  const std::string norm =
      "n = group_norm(v, num_groups=8)\ns = silu(n)\ny = elu(s)\noutput y\n";
  const Schedule first =
      Fastest("input x: " + rows + "\nv = hardsigmoid(x)\n" + norm);
  ASSERT_EQ(first.kernels.size(), 1u);
  EXPECT_EQ(first.kernels[0].rows->cluster, 4);
  EXPECT_THAT(Cut("input x: " + rows +
                      "\nparam w: f16[24,1,3,3]\n"
                      "v = conv2d(x, w, padding=1, groups=24)\n" +
                      norm,
                  kH100),
              ElementsAre("depthwise_conv2d", "reduce", "pointwise"));
}

// In the ring of a team, where none waits for another's place.
TEST(ScheduleChoiceTest, TeamsTakeFewRowsThatTheyHoldAtOnce) {
  EXPECT_THAT(
      Cut("input x: f16[3,224,38,38]\ninput z: f16[3,224,38,38]\n"
          "a = add(x, z)\ns = silu(a)\nn = group_norm(s, num_groups=8)\n"
          "y = relu(n)\noutput y\n",
          kH100),
      ElementsAre("row_team"));
}

}  // namespace
}  // namespace kiln
