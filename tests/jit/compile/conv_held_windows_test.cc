// Which convolutions' blocks hold windows until statistics are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fmt/format.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/kernel_traffic.h"
#include "jit/compile/specialize.h"
#include "tests/jit/compile/chain_plans.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// P3 without a scale, of another batch, and `rest` behind the norm.
std::string WindowChain(const std::string& rest, int64_t batch = 128) {
  return fmt::format(R"(
input x: f32[{0},8,128,128]
input z: f32[{0},64,31,31]
input s: f32[{0},64,1,1]
param w: f32[64,8,3,3]
c = conv2d(x, w)
n = group_norm(c, num_groups=16)
{1}
)",
                     batch, rest);
}

bool HoldsWindows(const std::string& text) {
  const Schedule schedule = Fastest(text);
  return std::any_of(schedule.kernels.begin(), schedule.kernels.end(),
                     [](const Kernel& kernel) {
                       return kernel.conv && kernel.conv->holds_windows();
                     });
}

TEST(ConvHeldWindowsTest, AStripOfTilesForEachBlockOfAnImage) {
  const Schedule schedule = Fastest(kPoolChain);
  ASSERT_EQ(schedule.kernels.size(), 2);  // one packs weights
  const Kernel& kernel = schedule.kernels.back();
  ASSERT_TRUE(kernel.conv->holds_windows());
  EXPECT_GT(kernel.conv->tiles_per_block, 1);
  EXPECT_GT(kernel.conv->rounds(), 1);
  const KernelSpec spec = MakeKernelSpec(schedule, kernel);
  ASSERT_EQ(spec.entries.size(), 1);
  EXPECT_EQ(spec.entries[0].symbol, "kiln_conv_held");
  EXPECT_TRUE(spec.entries[0].cooperative);
  EXPECT_LE(spec.entries[0].dynamic_shared_bytes, 227 * 1024);
}

TEST(ConvHeldWindowsTest, StoresResultsAlone) {
  const Schedule schedule = Fastest(kPoolChain);
  EXPECT_EQ(BytesWritten(schedule, schedule.kernels.back()),
            int64_t{128} * 64 * 31 * 31 * 4);
  const std::string unit =
      WriteUnit(MakeKernelSpec(schedule, schedule.kernels.back()));
  EXPECT_THAT(unit, HasSubstr("struct Finish {"));
  EXPECT_THAT(unit, Not(HasSubstr("StorePooled(")));
}

TEST(ConvHeldWindowsTest, TakesWhatFollowsChannelByChannel) {
  EXPECT_TRUE(
      HoldsWindows(WindowChain("p = avg_pool2d(n, kernel_size=4)\n"
                               "m = mul(p, s)\ny = silu(m)\noutput y")));
}

TEST(ConvHeldWindowsTest, LeavesWhatOthersNeedAndOtherTensorsToAnotherKernel) {
  const std::string pooled = "p = max_pool2d(n, kernel_size=4)\n";
  EXPECT_FALSE(HoldsWindows(WindowChain(pooled + "y = add(p, z)\noutput y")));
  EXPECT_FALSE(HoldsWindows(WindowChain(pooled + "output p\noutput n")));
  EXPECT_FALSE(
      HoldsWindows(WindowChain(pooled + "y = relu(p)\noutput p\noutput y")));
}

// From registers come windows of 2, 4 or 8 columns that share nothing.
TEST(ConvHeldWindowsTest, OtherWindowsGoThroughMemory) {
  for (const char* attributes : {"kernel_size=3", "kernel_size=4, stride=2"}) {
    EXPECT_FALSE(HoldsWindows(WindowChain(
        fmt::format("y = max_pool2d(n, {})\noutput y", attributes))))
        << attributes;
  }
}

// A strip has more tiles than are computed before the first is finished.
TEST(ConvHeldWindowsTest, StripsAreLongerThanTheLag) {
  for (int64_t batch = 1; batch < 132; batch += 13) {
    const Schedule schedule = Fastest(
        WindowChain("y = max_pool2d(n, kernel_size=4)\noutput y", batch));
    const ConvGeometry& geometry = *schedule.kernels[1].conv;
    if (!geometry.holds_windows()) continue;
    EXPECT_GT(geometry.fewest_tiles(), ConvGeometry::kHeldLag) << batch;
    EXPECT_LE(geometry.teams, batch);
  }
}

}  // namespace
}  // namespace kiln
