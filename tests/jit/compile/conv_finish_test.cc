// Which convolutions also apply what follows their normalisation.
#include "jit/compile/conv_finish.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fmt/format.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/kernel_traffic.h"
#include "jit/compile/specialize.h"
#include "jit/plan/plan_text.h"
#include "tests/jit/compile/chain_plans.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// P4 with `batch` images of `size` rows and one more input, and `rest` behind
// it.
std::string FinishedChain(int64_t batch, const std::string& rest,
                          int size = 256) {
  return fmt::format(R"(
input x: f32[{0},64,{2},{2}]
input z: f32[{0},64,{3},{3}]
param w: f32[64,64,3,3]
c = conv_transpose2d(x, w)
g = gelu(c)
n = group_norm(g, num_groups=8)
{1}
)",
                     batch, rest, size, size + 2);
}

bool Finishes(const std::string& text) {
  const Schedule schedule = Fastest(text);
  return std::any_of(
      schedule.kernels.begin(), schedule.kernels.end(),
      [](const Kernel& kernel) { return !kernel.group.finish.empty(); });
}

TEST(ConvFinishTest, OneKernelOfManyBlocks) {
  const Schedule schedule = Fastest(FinishedChain(128, "output n"));
  ASSERT_EQ(schedule.kernels.size(), 2);  // the first packs weights
  const Kernel& kernel = schedule.kernels[1];
  EXPECT_EQ(kernel.lag, FinishLag(*kernel.conv, kH100));
  const KernelSpec spec = MakeKernelSpec(schedule, kernel);
  ASSERT_EQ(spec.entries.size(), 1);
  EXPECT_EQ(spec.entries[0].grid[0], kernel.conv->blocks() + kernel.lag);
}

// One count of blocks, and one for each image.
TEST(ConvFinishTest, CountsBeginAtZero) {
  const Schedule schedule = Fastest(FinishedChain(128, "output n"));
  ASSERT_EQ(schedule.zero.size(), 1);
  EXPECT_EQ(schedule.zero[0].size_bytes, 129 * 4);
  EXPECT_EQ(schedule.zero[0].offset_bytes,
            schedule.kernels[1].progress->offset_bytes);
}

TEST(ConvFinishTest, LagsBehindWhatIsResident) {
  const Kernel kernel = Fastest(FinishedChain(128, "output n")).kernels[1];
  const int64_t of_image = kernel.conv->blocks() / 128;
  EXPECT_GT(kernel.lag, of_image + 132);
  EXPECT_LT(kernel.lag, of_image + 2 * 132);
}

TEST(ConvFinishTest, NeedsManyWaves) {
  EXPECT_TRUE(Finishes(FinishedChain(32, "output n")));
  EXPECT_FALSE(Finishes(FinishedChain(4, "output n")));
}

// conv_finish of bench/gpu_templates.py, which runs under the sanitizers.
TEST(ConvFinishTest, SmallImagesInABatchThatIsLargeEnough) {
  EXPECT_TRUE(Finishes(TransposedChain("[530,64,14,14]")));
}

// A block is part of one image there. (Were the convolution no output, blocks
// would hold images.)
TEST(ConvFinishTest, LeavesBlocksOfSeveralImagesToAnotherKernel) {
  const Schedule schedule = Fastest(R"(
input x: f32[10006,64,8,8]
param w: f32[96,64,3,3]
c = conv2d(x, w)
n = group_norm(c, num_groups=8)
y = relu(n)
output y
output c
)");
  const auto has_several = [](const Kernel& kernel) {
    return kernel.conv.has_value() && kernel.conv->images > 1;
  };
  EXPECT_TRUE(std::any_of(schedule.kernels.begin(), schedule.kernels.end(),
                          has_several));
  for (const Kernel& kernel : schedule.kernels) {
    EXPECT_TRUE(kernel.group.finish.empty());
  }
}

// In the grade tf32 the convolution is done too soon to hide so many bytes; no
// blocks hold images of that size.
TEST(ConvFinishTest, LeavesToAnotherKernelWhatTheMemoryLimits) {
  EXPECT_FALSE(Finishes("grade tf32\n" + FinishedChain(32, "output n", 512)));
  EXPECT_TRUE(Finishes(FinishedChain(32, "output n", 512)));
}

// Nor is there time for another tensor of that size.
TEST(ConvFinishTest, LeavesResidualsToAnotherKernel) {
  EXPECT_FALSE(Finishes(FinishedChain(128, "y = add(n, z)\noutput y")));
}

TEST(ConvFinishTest, CountsEveryOutput) {
  EXPECT_FALSE(
      Finishes(FinishedChain(128, "s = sigmoid(n)\noutput n\noutput s")));
}

TEST(ConvFinishTest, CountsWhatIsAnOutputBeforeTheNorm) {
  EXPECT_FALSE(Finishes(FinishedChain(128, "output c\noutput n")));
}

TEST(ConvFinishTest, CountsWhatLaterKernelsRead) {
  EXPECT_FALSE(Finishes(FinishedChain(128,
                                      "s = sigmoid(n)\n"
                                      "p = avg_pool2d(n, kernel_size=3)\n"
                                      "output s\noutput p")));
}

// The next norm takes along what lies between.
TEST(ConvFinishTest, LeavesTheWayToAnotherNormToIt) {
  EXPECT_FALSE(Finishes(FinishedChain(
      128, "r = relu(n)\ny = group_norm(r, num_groups=8)\noutput y")));
}

// A residual in a large batch of images: half as many vectors at once,
// so that both tensors' fit in the registers of producers.
TEST(ConvFinishTest, TakesFewerVectorsOfMoreTensors) {
  const Schedule schedule = Fastest(R"(
input x: f32[256,128,112,112]
input z: f32[256,128,112,112]
param w: f32[128,128,3,3]
c = conv2d(x, w, padding=1)
n = group_norm(c, num_groups=32)
a = add(n, z)
y = relu(a)
output y
)");
  ASSERT_EQ(schedule.kernels.size(), 2);
  EXPECT_THAT(WriteUnit(MakeKernelSpec(schedule, schedule.kernels[1])),
              HasSubstr("kAtOnce = 6;"));
}

TEST(ConvFinishTest, TakesAllThatFollowsElementByElement) {
  const Schedule schedule =
      Fastest(FinishedChain(128, "s = tanh(n)\ny = mul(n, s)\noutput y"));
  ASSERT_EQ(schedule.kernels.size(), 2);
  EXPECT_EQ(schedule.kernels[1].group.finish.size(), 3);
}

TEST(ConvFinishTest, LeavesAReductionToAnotherKernel) {
  EXPECT_GT(Fastest(FinishedChain(128, "y = mean(n, dim=[2,3])\noutput y"))
                .kernels.size(),
            2);
}

// What another kernel makes in between is not there yet.
TEST(ConvFinishTest, WaitsForNothingThatComesLater) {
  EXPECT_FALSE(Finishes(FinishedChain(128,
                                      "m = mean(z, dim=[2,3], keepdim=true)\n"
                                      "y = mul(n, m)\noutput y")));
}

// Two pointers to the same memory, one of them to constants, would let the
// compiler read what was there before.
TEST(ConvFinishTest, ReadsThroughThePointerThatItWrites) {
  const Schedule schedule = Fastest(FinishedChain(128, "output n\noutput g"));
  ASSERT_EQ(schedule.kernels.size(), 2);
  const KernelSpec spec = MakeKernelSpec(schedule, schedule.kernels[1]);
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(spec.tensors[i].place == spec.tensors[j].place)
          << spec.tensors[i].name << " " << spec.tensors[j].name;
    }
  }
  const std::string unit = WriteUnit(spec);
  EXPECT_THAT(unit, HasSubstr("kiln::Fetch(t.output1, at.i"));
  EXPECT_THAT(unit, Not(HasSubstr("const float* __restrict__ output1")));
}

TEST(ConvFinishTest, WhatIsReadAgainCountsAsTraffic) {
  const Schedule schedule = Fastest(FinishedChain(128, "output n"));
  const int64_t elements = int64_t{128} * 64 * 258 * 258;
  const int64_t statistics = 2 * 128 * 8 * 4;  // a mean and a deviation
  EXPECT_EQ(BytesRead(schedule, schedule.kernels[1]),
            int64_t{128} * 64 * 256 * 256 * 4 + elements * 4 + statistics +
                schedule.kernels[1].conv->packed_bytes());
  EXPECT_EQ(BytesWritten(schedule, schedule.kernels[1]),
            2 * elements * 4 + statistics);
}

}  // namespace
}  // namespace kiln
