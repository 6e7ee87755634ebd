// How a convolution's tiles have the windows of a pooling.
#include "jit/compile/conv_windows.h"

#include <gtest/gtest.h>

#include <string>

#include "fmt/format.h"
#include "jit/compile/conv_choice.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

// Of an image of 30 x 29, by a pooling with these attributes.
LoweredPlan PooledPlan(const std::string& attributes,
                       const std::string& pooling = "max_pool2d") {
  return LoweredOf(
      fmt::format("input x: f32[2,4,30,29]\nr = relu(x)\n"
                  "y = {}(r, {})\noutput y\n",
                  pooling, attributes));
}

bool CanPool(const std::string& attributes,
             const std::string& pooling = "max_pool2d") {
  const LoweredPlan plan = PooledPlan(attributes, pooling);
  return CanPoolTiles(plan, plan.nodes.back());
}

ConvWindows Windows(const std::string& attributes) {
  const LoweredPlan plan = PooledPlan(attributes);
  return WindowsOf(plan, plan.nodes.back());
}

TEST(ConvWindowsTest, DisjointWindowsInsideLeaveTilesAsTheyAre) {
  EXPECT_EQ(Windows("kernel_size=2"), (ConvWindows{{2, 2}, {2, 2}}));
  EXPECT_FALSE(Windows("kernel_size=[3,4]").lay_out_tiles());
  // 29 columns are no whole number of windows, but those there are lie inside.
  EXPECT_FALSE(Windows("kernel_size=2, ceil_mode=false").lay_out_tiles());
}

TEST(ConvWindowsTest, OthersLayTilesOut) {
  EXPECT_EQ(Windows("kernel_size=3, stride=2, padding=1"),
            (ConvWindows{{3, 3}, {2, 2}, {1, 1}, {30, 30}}));
  EXPECT_EQ(Windows("kernel_size=2, padding=[1,0]"),
            (ConvWindows{{2, 2}, {2, 2}, {1, 0}, {32, 28}}));
  EXPECT_EQ(Windows("kernel_size=2, ceil_mode=true"),
            (ConvWindows{{2, 2}, {2, 2}, {0, 0}, {30, 30}}));
  EXPECT_EQ(Windows("kernel_size=3, stride=2, padding=1").overlap(0), 1);
  EXPECT_EQ(Windows("kernel_size=2, padding=1").overlap(1), 0);
}

TEST(ConvWindowsTest, WholeWindowsHaveNoGaps) {
  const ConvWindows windows{{3, 4}, {2, 4}, {1, 0}, {30, 28}};
  EXPECT_EQ(windows.Whole(0, 2), 0);
  EXPECT_EQ(windows.Whole(0, 3), 3);
  EXPECT_EQ(windows.Whole(0, 4), 3);
  EXPECT_EQ(windows.Whole(0, 15), 15);
  EXPECT_EQ(windows.Whole(1, 11), 8);
}

TEST(ConvWindowsTest, TilesPoolSmallWindowsThatShareHalfAtMost) {
  EXPECT_TRUE(CanPool("kernel_size=3, stride=2, padding=1"));
  EXPECT_TRUE(CanPool("kernel_size=2, stride=1"));
  EXPECT_TRUE(CanPool("kernel_size=[8,4], stride=[4,4]"));
  EXPECT_FALSE(CanPool("kernel_size=3, stride=1"));
  EXPECT_FALSE(CanPool("kernel_size=9"));
  EXPECT_FALSE(CanPool("kernel_size=2, stride=3"));
  EXPECT_FALSE(CanPool("kernel_size=2, dilation=2"));
}

TEST(ConvWindowsTest, MeansNeedTheSameDivisorEverywhere) {
  EXPECT_TRUE(CanPool("kernel_size=3, stride=2, padding=1", "avg_pool2d"));
  EXPECT_TRUE(CanPool("kernel_size=3, divisor_override=9", "avg_pool2d"));
  EXPECT_FALSE(CanPool("kernel_size=3, divisor_override=8", "avg_pool2d"));
  EXPECT_FALSE(
      CanPool("kernel_size=3, stride=2, padding=1, count_include_pad=false",
              "avg_pool2d"));
  EXPECT_FALSE(CanPool("kernel_size=2, ceil_mode=true", "avg_pool2d"));
}

// Every window lies whole in the tile, and the part, where it begins.
void ExpectWholeWindows(const ConvGeometry& g) {
  const ConvWindows& windows = g.windows;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t length = i == 0 ? g.tile_h : g.tile_w;
    EXPECT_EQ(g.step(i) % windows.stride[i], 0);
    EXPECT_EQ(g.step(i), windows.Whole(i, length) - windows.overlap(i));
    EXPECT_EQ(g.extent(i), windows.extent[i]);
  }
  EXPECT_GE(g.tiles_across() * g.step(1), g.extent(1));
  EXPECT_GE(g.strips() * g.tiles_per_block * g.step(0), g.extent(0));
  if (!g.channel_rows) return;
  EXPECT_EQ(g.step(0), g.parts() * g.part_step());
  EXPECT_EQ(g.part_rows(), g.part_step() + windows.overlap(0));
  EXPECT_LE(g.run_span(), g.image_positions());
}

TEST(ConvWindowsTest, TilesShareWhatWindowsShare) {
  ConvProblem problem;
  problem.input = {8, 3, 62, 50};
  problem.output = {8, 64, 62, 50};
  problem.kernel = {3, 3};
  problem.padding = {1, 1};
  const ConvWindows overlapping{{3, 3}, {2, 2}, {1, 1}, {62, 50}};
  const ConvWindows uneven{{4, 2}, {3, 1}, {2, 0}, {63, 49}};
  for (const ConvWindows& windows : {overlapping, uneven}) {
    for (const Target& target : {kH100, kA100}) {
      for (const Grade grade : {Grade::kFp32, Grade::kTf32}) {
        ConvDemands demands;
        demands.windows = windows;
        const auto geometry =
            ChooseConvGeometry(problem, demands, {grade, target, 0});
        ASSERT_TRUE(geometry.has_value());
        ExpectWholeWindows(*geometry);
        EXPECT_EQ(geometry->padding(0), 1 + windows.before[0]);
      }
    }
  }
}

// Where pixels are rows, windows in front of a norm cost more than wide rows
// save.
TEST(ConvWindowsTest, WindowsInFrontOfANormHaveChannelsForRows) {
  for (const char* grade : {"fp32", "tf32"}) {
    const Schedule schedule = Fastest(fmt::format(
        "grade {}\ninput x: f32[1,16,512,512]\nparam w: f32[64,16,3,3]\n"
        "c = conv2d(x, w)\nn = group_norm(c, num_groups=8)\n"
        "y = max_pool2d(n, kernel_size=4)\noutput y\n",
        grade));
    ASSERT_TRUE(schedule.kernels[0].conv.has_value());
    EXPECT_TRUE(schedule.kernels[0].conv->channel_rows) << grade;
  }
}

}  // namespace
}  // namespace kiln
