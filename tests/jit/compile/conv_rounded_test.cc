// Results of 16 bits that are rounded in registers
// (kernel_sources/conv_rounded.cuh). Prevents that it is done where they are
// not all that is left, or where neighbours are no access.
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

Schedule RoundedSchedule(const std::string& ops,
                         const std::string& type = "f16", int width = 56,
                         int images = 8) {
  return Fastest(
      fmt::format("input x: {0}[{2},64,56,{1}]\ninput r: {0}[{2},256,56,{1}]\n"
                  "input q: {0}[{2},256,56,{1}]\nparam w: {0}[256,64,3,3]\n"
                  "c = conv2d(x, w, padding=1)\n{3}\noutput y\n",
                  type, width, images, ops),
      kH100);
}

TEST(ConvRoundedTest, RoundsInRegisters) {
  const std::string unit = LastUnitOf(RoundedSchedule("y = relu(c)", "bf16"));
  EXPECT_THAT(unit, HasSubstr("kRoundsSums = true"));
  EXPECT_THAT(unit, HasSubstr("using Stored = kiln::BFloat16;"));
  EXPECT_THAT(unit, HasSubstr("return t.output0;"));
  EXPECT_THAT(unit, Not(HasSubstr("BesideOf")));
  EXPECT_THAT(unit, Not(HasSubstr("StoreRead")));
}

TEST(ConvRoundedTest, ReadsOneTensorBeside) {
  const Schedule schedule = RoundedSchedule("a = add(c, r)\ny = relu(a)");
  const std::string unit = LastUnitOf(schedule);
  EXPECT_THAT(unit, HasSubstr("kRoundsSums = true"));
  EXPECT_THAT(unit, HasSubstr("kReadsBeside = true"));
  EXPECT_THAT(unit, HasSubstr("BesideOf"));
  EXPECT_THAT(unit, Not(HasSubstr("LoadBeside")));
  EXPECT_EQ(schedule.kernels.back().conv->BesideRegisters(
                schedule.kernels.back().demands),
            0);
}

TEST(ConvRoundedTest, OthersDoNot) {
  const auto rounds_none = Not(HasSubstr("kRoundsSums = true"));
  for (const char* ops : {
           "a = add(c, r)\ny = mul(a, q)",
           "a = relu(c)\ny = tanh(a)\noutput a",
           "y = relu(c)\noutput y",
           "y = mean(c, dim=[2,3])",
       }) {
    EXPECT_THAT(LastUnitOf(RoundedSchedule(ops)), rounds_none) << ops;
  }
  EXPECT_THAT(LastUnitOf(RoundedSchedule("y = relu(c)", "f32")), rounds_none);
  EXPECT_THAT(LastUnitOf(RoundedSchedule("y = relu(c)", "f16", 57)),
              rounds_none);
}

// A row of a tile would have an odd number of columns.
TEST(ConvRoundedTest, StridesHaveEvenTiles) {
  const Schedule schedule = Fastest(R"(
input x: f16[8,64,512,512]
param w: f16[128,64,3,3]
c = conv2d(x, w, stride=2, padding=1)
y = relu(c)
output y
)",
                                    kH100);
  const ConvGeometry& geometry = *schedule.kernels.back().conv;
  EXPECT_TRUE(geometry.channel_rows);
  EXPECT_TRUE(geometry.rounds_sums);
  EXPECT_LT(geometry.tile_w, 256);
}

// Blocks are as many as multiprocessors rather than images.
TEST(ConvRoundedTest, BlocksComputeSeveralImages) {
  const Schedule schedule = Fastest(R"(
input x: f16[32,256,14,14]
param w: f16[1024,256,1,1]
c = conv2d(x, w)
y = relu(c)
output y
)",
                                    kH100);
  const ConvGeometry& geometry = *schedule.kernels.back().conv;
  EXPECT_EQ(geometry.rounds(), 2);
  EXPECT_EQ(geometry.blocks(), 128);
}

}  // namespace
}  // namespace kiln
