// Elements that are stored from registers
// (kernel_sources/conv_run_stores.cuh). Prevents that it is done where more
// than these is left, or where neighbours are no access, and that tiles are as
// small as if there were planes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/specialize.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Schedule TransposedSchedule(const std::string& ops, int width = 64) {
  return Fastest(fmt::format("input x: f16[16,256,64,{}]\n"
                             "input r: f16[16,128,128,{}]\n"
                             "param w: f16[256,128,4,4]\n"
                             "c = conv_transpose2d(x, w, stride=2, padding=1)\n"
                             "{}\noutput y\n",
                             width, 2 * width, ops),
                 kH100);
}

std::string ConvolutionUnit(const Schedule& schedule) {
  return WriteUnit(MakeKernelSpec(schedule, ConvolutionOf(schedule)));
}

TEST(ConvRunStoresTest, StatisticsAreOfWhatIsStoredFromRegisters) {
  const Schedule schedule =
      TransposedSchedule("n = group_norm(c, num_groups=128)\ny = relu(n)");
  const std::string unit = ConvolutionUnit(schedule);
  EXPECT_THAT(unit, HasSubstr("kStoresSums = true"));
  EXPECT_THAT(unit, HasSubstr("kHasPlanes = false"));
  EXPECT_THAT(unit, HasSubstr("stores.Store("));
}

// Planes have no more than 128.
TEST(ConvRunStoresTest, TilesHaveMoreColumnsThanPlanes) {
  const Schedule schedule = Fastest(R"(
input x: f16[16,512,32,32]
param w: f16[512,256,4,4]
c = conv_transpose2d(x, w, stride=2, padding=1)
y = relu(c)
output y
)",
                                    kH100);
  const ConvGeometry& geometry = *schedule.kernels.back().conv;
  EXPECT_TRUE(geometry.stores_sums);
  EXPECT_EQ(geometry.plane_bytes(), 0);
  EXPECT_GT(geometry.tiles_n * 8, 128);
}

TEST(ConvRunStoresTest, OthersDoNot) {
  const auto stores_none = Not(HasSubstr("kStoresSums = true"));
  for (const char* ops : {
           "y = add(c, r)",
           "a = relu(c)\ny = tanh(a)\noutput a",
           "a = relu(c)\nn = group_norm(a, num_groups=8)\ny = relu(n)\n"
           "output c",
           "y = mean(c, dim=[2,3])",
           "y = softmax(c, dim=1)",
       }) {
    EXPECT_THAT(ConvolutionUnit(TransposedSchedule(ops)), stores_none) << ops;
  }
}

}  // namespace
}  // namespace kiln
