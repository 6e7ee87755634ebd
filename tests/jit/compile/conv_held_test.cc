// Which convolutions' blocks hold images until their statistics are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/kernel_traffic.h"
#include "jit/compile/specialize.h"
#include "jit/plan/plan_text.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;

CanonicalPlan Canonical(const std::string& text) {
  return *Canonicalize(*ParsePlanText(text));
}

// P4 in the grade tf32 with one more input, and `rest` behind it.
std::string HeldChain(const std::string& rest, int64_t batch = 128) {
  return fmt::format(R"(
grade tf32
input x: f32[{0},64,256,256]
input z: f32[{0},64,258,258]
param w: f32[64,64,3,3]
param s: f32[64,1,1]
c = conv_transpose2d(x, w)
g = gelu(c)
n = group_norm(g, num_groups=8)
{1}
)",
                     batch, rest);
}

bool Holds(const Schedule& schedule) {
  return std::any_of(schedule.kernels.begin(), schedule.kernels.end(),
                     [](const Kernel& kernel) {
                       return kernel.conv && kernel.conv->holds_images();
                     });
}
bool Holds(const std::string& text) { return Holds(Fastest(text)); }

// The kernel behind the one that packs weights.
const Kernel& Only(const Schedule& schedule) {
  EXPECT_EQ(schedule.kernels.size(), 2);
  return schedule.kernels.back();
}

TEST(ConvHeldTest, OneKernelOfAsManyBlocksAsAnImageHasTiles) {
  const Schedule schedule = Fastest(HeldChain("output n"));
  const Kernel& kernel = Only(schedule);
  ASSERT_TRUE(kernel.conv->holds_images());
  EXPECT_EQ(kernel.conv->blocks(), 129);  // 43 x 3 tiles of 6 x 86 pixels
  EXPECT_EQ(kernel.conv->rounds(), 128);
  const KernelSpec spec = MakeKernelSpec(schedule, kernel);
  ASSERT_EQ(spec.entries.size(), 1);
  EXPECT_EQ(spec.entries[0].grid[0], 129);
  EXPECT_TRUE(spec.entries[0].cooperative);
}

TEST(ConvHeldTest, MovesInputAndResultAlone) {
  const Schedule schedule = Fastest(HeldChain("output n"));
  const Kernel& kernel = Only(schedule);
  const int64_t input = int64_t{128} * 64 * 256 * 256 * 4;
  const int64_t result = int64_t{128} * 64 * 258 * 258 * 4;
  EXPECT_EQ(BytesRead(schedule, kernel), input + kernel.conv->packed_bytes());
  EXPECT_EQ(BytesWritten(schedule, kernel), result);
  EXPECT_LT(schedule.workspace_bytes, int64_t{2} << 20);
}

// What no cache can hold need not push out what it can.
TEST(ConvHeldTest, StreamsResultsThatNoCacheHolds) {
  const auto members_of = [](int64_t batch) {
    const Schedule schedule = Fastest(HeldChain("output n", batch));
    return fmt::format(
        "{}",
        fmt::join(MakeKernelSpec(schedule, Only(schedule)).members, "\n"));
  };
  EXPECT_THAT(members_of(4), HasSubstr("kiln::StreamIf(inside, "));
  EXPECT_THAT(members_of(2), HasSubstr("kiln::StoreIf(inside, "));
}

// A word for each group and block of each image, and one for each block.
TEST(ConvHeldTest, RecordsAreZeroOnce) {
  const Schedule schedule = Fastest(HeldChain("output n"));
  ASSERT_EQ(schedule.zero.size(), 1);
  EXPECT_EQ(schedule.zero[0].when, ZeroWhen::kOnce);
  EXPECT_EQ(schedule.zero[0].size_bytes, (128 * 8 * 129 + 129) * 8);
}

TEST(ConvHeldTest, AsksForAllBlocksToBeResident) {
  const std::vector<Schedule> schedules =
      MakeSchedules(Canonical(HeldChain("output n")), kH100);
  ASSERT_EQ(schedules.size(), 2);
  EXPECT_TRUE(schedules[0].requires_.cooperative);
  EXPECT_EQ(schedules[0].requires_.min_sm_count, 129);
  EXPECT_LE(schedules[0].requires_.shared_optin_bytes, 227 * 1024);
}

// The same machine code: a launch that publishes states, then all.
TEST(ConvHeldTest, TakesTurnsWhereTheyMayNotBe) {
  const std::vector<Schedule> schedules =
      MakeSchedules(Canonical(HeldChain("output n")), kH100);
  ASSERT_EQ(schedules.size(), 2);
  EXPECT_EQ(schedules[1].requires_, Requirements{});
  const KernelSpec resident = MakeKernelSpec(schedules[0], Only(schedules[0]));
  const KernelSpec turns = MakeKernelSpec(schedules[1], Only(schedules[1]));
  EXPECT_EQ(WriteUnit(resident), WriteUnit(turns));
  EXPECT_FALSE(turns.entries[0].cooperative);
  ASSERT_EQ(turns.entries[0].earlier_grids.size(), 1);
  EXPECT_EQ(turns.entries[0].earlier_grids[0][1], 2);
}

TEST(ConvHeldTest, SharedMemoryIsWhatTheLaunchAsksFor) {
  const Schedule schedule = Fastest(HeldChain("output n"));
  const KernelSpec spec = MakeKernelSpec(schedule, Only(schedule));
  EXPECT_LE(spec.entries[0].dynamic_shared_bytes, 227 * 1024);
}

TEST(ConvHeldTest, TakesWhatFollowsChannelByChannel) {
  const Schedule schedule =
      Fastest(HeldChain("m = mul(n, s)\ny = silu(m)\noutput y"));
  EXPECT_TRUE(Holds(schedule));
  const std::string unit = WriteUnit(MakeKernelSpec(schedule, Only(schedule)));
  EXPECT_THAT(unit, HasSubstr("kiln::Silu"));
  EXPECT_THAT(unit, HasSubstr("const kiln::Moments& state"));
}

// Of two parts, sums of chunks take twice the registers: no tile is large
// enough for 132 blocks to hold an image.
TEST(ConvHeldTest, LacksRegistersInTheGradeFp32) {
  std::string text = HeldChain("output n");
  text.replace(text.find("tf32"), 4, "fp32");
  EXPECT_FALSE(Holds(text));
}

TEST(ConvHeldTest, LeavesOtherTensorsToAnotherKernel) {
  EXPECT_FALSE(Holds(HeldChain("y = add(n, z)\noutput y")));
  EXPECT_FALSE(Holds(HeldChain("y = add(n, c)\noutput y")));
}

TEST(ConvHeldTest, LeavesNothingThatOthersNeed) {
  EXPECT_FALSE(Holds(HeldChain("output n\noutput g")));
  EXPECT_FALSE(Holds(HeldChain("s1 = sigmoid(n)\noutput n\noutput s1")));
  EXPECT_FALSE(
      Holds(HeldChain("r = relu(n)\ny = mean(r, dim=[2,3])\noutput y")));
}

TEST(ConvHeldTest, FewerMultiprocessorsThanTilesHoldNothing) {
  Target small = kH100;
  small.sm_count = 114;
  EXPECT_FALSE(
      Holds(MakeSchedules(Canonical(HeldChain("output n")), small).front()));
}

// The second candidate is the fastest that does not: that of a plan that
// cannot.
TEST(ConvHeldTest, OtherCandidatesDoNotHold) {
  const Schedule second = MakeSchedules(Canonical(HeldChain("output n")), kH100,
                                        Room::kTight, {.conv = 1})
                              .front();
  EXPECT_FALSE(Holds(second));
  const Schedule apart = Fastest(HeldChain("output n\noutput g"));
  EXPECT_EQ(second.kernels[1].conv, apart.kernels[1].conv);
}

// Several teams: 32 images of 64 x 64 pixels.
TEST(ConvHeldTest, SmallImagesHaveTeamsOfTheirOwn) {
  const Schedule schedule = Fastest(R"(
input x: f16[32,64,64,64]
param w: f16[64,64,3,3]
c = conv2d(x, w, padding=1)
n = group_norm(c, num_groups=8)
y = silu(n)
output y
)");
  const Kernel& kernel = Only(schedule);
  ASSERT_TRUE(kernel.conv->holds_images());
  EXPECT_GT(kernel.conv->teams, 1);
  EXPECT_LE(kernel.conv->blocks(), kH100.sm_count);
}

// Lanes a stride apart read sectors again, from the L1; and two warpgroups
// bring more than one. (Measured: 40 us with both, 46 and 51 without.)
TEST(ConvHeldTest, StridedImagesLeaveRoomToTheL1) {
  const Schedule schedule = Fastest(R"(
grade tf32
input x: f32[16,64,112,112]
param w: f32[128,64,2,2]
c = conv2d(x, w, stride=2)
y = group_norm(c, num_groups=1)
output y
)",
                                    kH100);
  const Kernel& kernel = Only(schedule);
  ASSERT_TRUE(kernel.conv->holds_images());
  EXPECT_EQ(kernel.conv->producers, 2);
  const KernelSpec spec = MakeKernelSpec(schedule, kernel);
  EXPECT_LE(spec.entries[0].dynamic_shared_bytes, 195 * 1024);
}

// Few products, which two kernels would both compute: 303 and 236 us held; but
// of 3 channels 92 and 136.
TEST(ConvHeldTest, ComputesNothingAgainWhereThatTakesLonger) {
  const auto text = [](int inputs, int batch, int outputs) {
    return fmt::format(
        "grade tf32\ninput x: f32[{1},{0},128,128]\n"
        "param w: f32[{2},{0},3,3]\nc = conv2d(x, w, padding=1)\n"
        "n = group_norm(c, num_groups=8)\ny = relu(n)\noutput y\n",
        inputs, batch, outputs);
  };
  const Schedule held = Fastest(text(8, 128, 64));
  EXPECT_TRUE(Only(held).conv->holds_images());
  const Schedule again = Fastest(text(3, 64, 32));
  EXPECT_FALSE(Holds(again));
  EXPECT_EQ(
      std::count_if(again.kernels.begin(), again.kernels.end(),
                    [](const Kernel& kernel) { return kernel.computes(); }),
      2);
}

// Another norm of the same convolution would have to compute it, too.
TEST(ConvHeldTest, LeavesTwoNormsOfOneConvolutionApart) {
  EXPECT_FALSE(Holds(R"(
grade tf32
input x: f32[128,8,128,128]
param w: f32[64,8,3,3]
c = conv2d(x, w)
n = group_norm(c, num_groups=8)
m = group_norm(c, num_groups=16)
y = relu(n)
z = relu(m)
output y
output z
)"));
}

// Measured: 66 us as two kernels, 162 held.
TEST(ConvHeldTest, ManyChannelsOfSmallImagesStayApart) {
  EXPECT_FALSE(Holds(R"(
input x: f32[128,256,7,7]
param w: f32[256,256,3,3]
c = conv2d(x, w, padding=1)
n = group_norm(c, num_groups=8)
y = relu(n)
output y
)"));
}

}  // namespace
}  // namespace kiln
