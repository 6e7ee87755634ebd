// Blocks of a cluster that share the chunks of a tile. Prevents that a
// convolution with few tiles and many channels leaves most of the device idle,
// and clusters for which there is no room at once.
#include <gtest/gtest.h>

#include <string>

#include "fmt/format.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

std::string Deep(const std::string& x, const std::string& w,
                 const std::string& rest = "y = relu(c)") {
  return fmt::format(
      "input x: f32[{}]\nparam w: f32[{}]\nc = conv2d(x, w, padding=1)\n{}\n"
      "output y\n",
      x, w, rest);
}

const char kFewTiles[] = "1,960,13,13";
const char kDeepFilter[] = "56,960,3,3";

int SumBlocks(const std::string& text, const Target& target = kH100) {
  const Schedule schedule = Fastest(text, target);
  return ConvolutionOf(schedule).conv->sum_blocks;
}

TEST(ClusterSumsTest, FewTilesOfManyChannelsShareThem) {
  const std::string text = Deep(kFewTiles, kDeepFilter);
  EXPECT_GT(SumBlocks(text), 1);
  EXPECT_GT(SumBlocks("grade tf32\n" + text), 1);
  EXPECT_GT(SumBlocks(Deep(kFewTiles, kDeepFilter,
                           "y = group_norm(c, num_groups=8)")),
            1);
}

TEST(ClusterSumsTest, OthersDoNot) {
  EXPECT_EQ(SumBlocks(Deep("64,960,13,13", kDeepFilter)), 1) << "many tiles";
  EXPECT_EQ(SumBlocks(Deep("1,16,13,13", "56,16,3,3")), 1) << "few channels";
  EXPECT_EQ(SumBlocks(Deep(kFewTiles, kDeepFilter), kA100), 1);
}

TEST(ClusterSumsTest, AllBlocksAreOnTheDeviceAtOnce) {
  int sharing = 0;
  for (const int count : {132, 78, 16, 4}) {
    const Schedule schedule =
        Fastest(Deep(kFewTiles, kDeepFilter), {"sm_90a", count});
    const ConvGeometry& g = *ConvolutionOf(schedule).conv;
    if (g.sum_blocks == 1) continue;
    ++sharing;
    EXPECT_LE(g.blocks(), count * g.resident_blocks);
    if (g.sum_blocks > 2) {
      EXPECT_LE(g.blocks(), count * 6 / 7 * g.resident_blocks);
    }
  }
  EXPECT_GE(sharing, 2);
}

TEST(ClusterSumsTest, ATuningMayHaveFewerShare) {
  const int first = SumBlocks(Deep(kFewTiles, kDeepFilter));
  EXPECT_TRUE(FindConvRank(Deep(kFewTiles, kDeepFilter), kH100,
                           [first](const Kernel& kernel) {
                             return kernel.conv && kernel.computes() &&
                                    kernel.conv->sum_blocks < first;
                           }));
}

TEST(ClusterSumsTest, TheLaunchHasClustersAndPackingKnowsOfNone) {
  const Schedule schedule = Fastest(Deep(kFewTiles, kDeepFilter));
  for (const Kernel& kernel : schedule.kernels) {
    if (!kernel.conv) continue;
    const KernelSpec spec = MakeKernelSpec(schedule, kernel);
    const uint32_t expected =
        kernel.computes() ? static_cast<uint32_t>(kernel.conv->sum_blocks) : 1;
    EXPECT_EQ(spec.entries.front().cluster[0], expected);
    EXPECT_EQ(spec.entries.front().grid[0] % expected, 0u);
  }
}

}  // namespace
}  // namespace kiln
