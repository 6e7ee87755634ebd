// Which kernels go through their tensors from the end.
#include "jit/compile/turn_around.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "jit/compile/kernel_spec.h"
#include "jit/compile/specialize.h"
#include "jit/plan/plan_text.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<bool> Directions(const Schedule& schedule) {
  std::vector<bool> backwards;
  for (const Kernel& kernel : schedule.kernels) {
    if (!kernel.prepares) backwards.push_back(kernel.backwards);
  }
  return backwards;
}

Schedule PlainOf(const std::string& text) {
  return MakeSchedules(*Canonicalize(*ParsePlanText(text)), kH100, Room::kPlain)
      .front();
}

constexpr const char* kTurnedConvolution = R"(
input x: f32[2,8,20,24]
param w: f32[16,8,3,3]
c = conv2d(x, w, padding=1)
n = group_norm(c, num_groups=4)
y = tanh(n)
output y
)";

TEST(TurnAroundTest, WhatFollowsAConvolutionBeginsAtItsEnd) {
  const Schedule schedule = PlainOf(kTurnedConvolution);
  // The convolution, statistics, and what needs them.
  EXPECT_THAT(Directions(schedule), ElementsAre(false, true, false));
}

TEST(TurnAroundTest, TheSecondConvolutionDoesNotTurn) {
  const Schedule schedule = PlainOf(R"(
input x: f32[2,8,20,24]
param w: f32[8,8,3,3]
c = conv2d(x, w, padding=1)
d = conv2d(c, w, padding=1)
m = amax(d, dim=[2,3])
output m
)");
  EXPECT_THAT(Directions(schedule), ElementsAre(false, false, true));
}

// The first reads x and p, the second y and p.
TEST(TurnAroundTest, KernelsThatShareParametersAloneDoNotTurn) {
  const Schedule schedule = PlainOf(R"(
input x: f32[2,8,20,24]
input y: f32[2,8,20,12]
param p: f32[8,1,1]
a = mul(x, p)
b = mul(y, p)
output a
output b
)");
  EXPECT_THAT(Directions(schedule), ElementsAre(false, false));
}

TEST(TurnAroundTest, PackingWeightsIsNoKernelBefore) {
  const Schedule schedule = Fastest(kTurnedConvolution);
  EXPECT_TRUE(schedule.kernels[0].prepares);
  EXPECT_FALSE(Directions(schedule)[0]);
}

TEST(TurnAroundTest, SourcesSayIt) {
  const Schedule schedule = PlainOf(kTurnedConvolution);
  const KernelSpec statistics = MakeKernelSpec(schedule, schedule.kernels[1]);
  const KernelSpec rest = MakeKernelSpec(schedule, schedule.kernels[2]);
  EXPECT_THAT(WriteUnit(statistics), HasSubstr("kBackwards = true;"));
  EXPECT_THAT(WriteUnit(rest), HasSubstr("kBackwards = false;"));
}

}  // namespace
}  // namespace kiln
