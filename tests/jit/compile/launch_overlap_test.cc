// Which kernels begin while the one before them ends, and which bring their
// input meanwhile. Prevents that a kernel reads what is not there yet, and that
// one begins where the kernel before leaves it too little of the L1.
#include "jit/compile/launch_overlap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fmt/format.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/launch_steps.h"
#include "jit/compile/specialize.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kComputedAgainPlan = R"(
input x: f32[128,8,128,128]
param w: f32[64,8,3,3]
c = conv2d(x, w)
n = group_norm(c, num_groups=16)
r = add(n, c)
y = logsumexp(r, dim=1, keepdim=true)
output y
)";

// Of images that no chip holds.
std::string NormAndRelu(int batch) {
  return fmt::format(R"(
input x: f32[{},64,250,250]
param w: f32[64,64,3,3]
c = conv2d(x, w, padding=1)
n = group_norm(c, num_groups=8)
y = relu(n)
output y
)",
                     batch);
}

std::vector<Kernel> Launched(const Schedule& schedule) {
  std::vector<Kernel> kernels;
  for (const Kernel& kernel : schedule.kernels) {
    if (!kernel.prepares) kernels.push_back(kernel);
  }
  return kernels;
}

// Those behind the first.
std::vector<bool> Overlapping(const Schedule& schedule) {
  const std::vector<Kernel> kernels = Launched(schedule);
  std::vector<bool> overlaps;
  for (size_t i = 1; i < kernels.size(); ++i) {
    overlaps.push_back(kernels[i].overlaps);
  }
  return overlaps;
}

std::vector<bool> FetchingEarly(const Schedule& schedule) {
  std::vector<bool> early;
  for (const Kernel& kernel : Launched(schedule)) {
    early.push_back(kernel.fetches_early);
  }
  return early;
}

std::vector<bool> StepsThatOverlap(const Schedule& schedule) {
  std::vector<Step> steps;
  for (const Kernel& kernel : Launched(schedule)) {
    AddLaunchSteps(MakeKernelSpec(schedule, kernel), 0, &steps);
  }
  std::vector<bool> overlap;
  for (const Step& step : steps) {
    overlap.push_back(step.programmatic_stream_serialization);
  }
  return overlap;
}

TEST(LaunchOverlapTest, AConvolutionThatIsComputedAgainFetchesEarly) {
  const Schedule schedule = Fastest(kComputedAgainPlan);
  EXPECT_THAT(FetchingEarly(schedule), ElementsAre(false, true));
  EXPECT_THAT(StepsThatOverlap(schedule), ElementsAre(false, true));
}

TEST(LaunchOverlapTest, WhatFollowsANormBeginsEarlyAndWaits) {
  const Schedule schedule = Fastest(NormAndRelu(4));
  EXPECT_THAT(FetchingEarly(schedule), Each(false));
  EXPECT_THAT(Overlapping(schedule), Each(true));
  const KernelSpec last = MakeKernelSpec(schedule, schedule.kernels.back());
  EXPECT_THAT(WriteUnit(last), HasSubstr("kiln::AwaitPrevious();"));
}

// The kernel that merges is in the unit of one that waits by itself.
TEST(LaunchOverlapTest, EveryEntryWaits) {
  const Schedule schedule = Fastest(NormAndRelu(1) + "output c\n");
  const KernelSpec spec = MakeKernelSpec(schedule, schedule.kernels[1]);
  ASSERT_EQ(spec.entries.size(), 2);
  EXPECT_TRUE(spec.entries[0].awaits_itself);
  EXPECT_FALSE(spec.entries[1].awaits_itself);
}

TEST(LaunchOverlapTest, OnlyBlocksThatWaitForEachOtherBeginLate) {
  const Schedule schedule = Fastest(R"(
input x: f16[32,64,64,64]
input w: f16[64,64,3,3]
c = conv2d(x, w, padding=1)
n = group_norm(c, num_groups=8)
r = relu(n)
output r
)");
  ASSERT_TRUE(schedule.kernels.back().conv->holds_images());
  EXPECT_THAT(schedule.kernels, ElementsAre(Field(&Kernel::overlaps, true),
                                            Field(&Kernel::overlaps, false)));
}

TEST(LaunchOverlapTest, WindowsWaitForTheirShareOfTheL1) {
  const Schedule schedule = Fastest(R"(
input x: f32[32,3,224,224]
param w: f32[64,3,7,7]
c = conv2d(x, w, stride=2, padding=3)
r = relu(c)
y = max_pool2d(r, kernel_size=3, stride=2, padding=1)
output y
output r
)");
  EXPECT_THAT(Overlapping(schedule), ElementsAre(false));
}

// Two of their blocks have as much shared memory as what keeps rows before.
TEST(LaunchOverlapTest, CorrelationsLackNoL1) {
  const Schedule schedule = Fastest(R"(
grade tf32
input z: f32[128,8,128,128]
param w: f32[64,8,3,3]
x = group_norm(z, num_groups=1)
c = conv2d(x, w)
n = group_norm(c, num_groups=8)
t = tanh(n)
y = logsumexp(t, dim=1)
output y
)");
  const std::vector<Kernel> kernels = Launched(schedule);
  ASSERT_EQ(kernels.size(), 3);
  ASSERT_TRUE(kernels[1].correlation.has_value());
  EXPECT_GT(kernels[0].rows->dynamic_shared_bytes, 132 * 1024);
  EXPECT_LT(CorrelatorBytes(kernels[1].conv->problem), 132 * 1024);
  EXPECT_TRUE(kernels[1].overlaps);
}

TEST(LaunchOverlapTest, AConvolutionOfAConvolutionWaits) {
  const Schedule schedule = Fastest(R"(
input x: f32[32,16,64,64]
param w: f32[16,16,3,3]
c = conv2d(x, w, padding=1)
y = conv2d(c, w, padding=1)
output y
)");
  EXPECT_THAT(FetchingEarly(schedule), Each(false));
}

TEST(LaunchOverlapTest, WeightsPackedInTheLaunchAreWaitedFor) {
  const Schedule schedule = Fastest(R"(
input x: f32[32,16,64,64]
input w: f32[16,16,3,3]
y = conv2d(x, w, padding=1)
output y
)");
  EXPECT_THAT(FetchingEarly(schedule), ElementsAre(false, false));
  EXPECT_THAT(Overlapping(schedule), ElementsAre(true));
}

TEST(LaunchOverlapTest, GridsThatMustBeResidentDoNotOverlap) {
  const Schedule schedule = Fastest(R"(
input x: f32[8,64,512,512]
a = group_norm(x, num_groups=8)
b = relu(a)
y = group_norm(b, num_groups=8)
output y
)");
  EXPECT_THAT(Overlapping(schedule), Not(Contains(true)));
  EXPECT_THAT(Overlapping(schedule), Not(IsEmpty()));
}

// A block needs no other block, whatever keeps its rows.
TEST(LaunchOverlapTest, RowsOfABlockOverlap) {
  const Schedule schedule = Fastest(R"(
input x: f32[32,64,64,64]
a = max_pool2d(x, kernel_size=2)
b = group_norm(a, num_groups=8)
c = softmax(b, dim=1)
y = softmax(c, dim=3)
output y
)");
  EXPECT_THAT(Overlapping(schedule), Each(true));
  EXPECT_GE(schedule.kernels.size(), 4u);
}

TEST(LaunchOverlapTest, OnlyFromHopperOn) {
  EXPECT_THAT(StepsThatOverlap(Fastest(kComputedAgainPlan, kA100)),
              Each(false));
}

}  // namespace
}  // namespace kiln
