// What the units of convolutions on Hopper say of channels, and of where
// statistics are taken.
#include "jit/compile/conv_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fmt/format.h"
#include "jit/compile/specialize.h"
#include "jit/plan/plan_text.h"
#include "tests/jit/compile/chain_plans.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The unit whose kernel is `symbol`, empty without one.
std::string UnitNamed(const std::string& text, const std::string& symbol,
                      const Target& target = kH100) {
  const Schedule schedule = Fastest(text, target);
  for (const Kernel& kernel : schedule.kernels) {
    const KernelSpec spec = MakeKernelSpec(schedule, kernel);
    if (spec.entries[0].symbol == symbol) return WriteUnit(spec);
  }
  return "";
}

std::string NormAfter(const std::string& op) {
  return R"(
input x: f32[32,64,258,258]
input z: f32[32,64,256,256]
param w: f32[64,64,3,3]
c = conv2d(x, w)
v = )" + op +
         R"(
y = group_norm(v, num_groups=8)
output y
)";
}

TEST(ConvSpecTest, ABlockComputesOnceWhatItsChannelsHaveInCommon) {
  EXPECT_THAT(UnitNamed(kResidualChain, "kiln_conv_reduce"),
              AllOf(HasSubstr("struct alignas(8) Channel {"),
                    HasSubstr("fmaf(v0_scaled, channel.v1_scale, "),
                    HasSubstr("kSharesChannels = true")));
  EXPECT_THAT(UnitNamed(kResidualChain, "kiln_conv_reduce", kA100),
              AllOf(HasSubstr("channel.v1_scale"),
                    HasSubstr("kSharesChannels = false")));
}

// Behind a convolution of `channels` whose pixels are rows, but for 64.
std::string ReductionOf(int channels) {
  return fmt::format(R"(
input x: f32[128,8,128,128]
param w: f32[{},8,3,3]
c = conv2d(x, w)
n = group_norm(c, num_groups=8)
t = tanh(n)
r = add(t, c)
y = logsumexp(r, dim=1, keepdim=true)
output y
)",
                     channels);
}

void ExpectHeldTurns(const std::string& plan, const std::string& layout,
                     int held_for) {
  EXPECT_THAT(UnitNamed(plan, "kiln_conv_reduce"),
              AllOf(HasSubstr(layout),
                    HasSubstr(fmt::format("kTurnHeldFor = {};", held_for))));
}

TEST(ConvSpecTest, ManyGroupsHoldTheirTurnsInFrontOfAReduction) {
  ExpectHeldTurns(ReductionOf(48), "kWarpgroups = 4;", 1);
  ExpectHeldTurns("grade tf32" + ReductionOf(48), "kWarpgroups = 3;", 4);
}

TEST(ConvSpecTest, ChannelsAsRowsHoldTurnsForLess) {
  ExpectHeldTurns(ReductionOf(64), "kChannelRows = true;", 0);
  ExpectHeldTurns("grade tf32" + ReductionOf(64), "kChannelRows = true;", 2);
}

TEST(ConvSpecTest, OthersPassTheirTurnsAtOnce) {
  const std::string held = "kTurnHeldFor = 0;";
  const auto two_groups = AllOf(HasSubstr("kWarpgroups = 2;"), HasSubstr(held));
  EXPECT_THAT(UnitNamed(kResidualChain, "kiln_conv_statistics"), two_groups);
  EXPECT_THAT(UnitNamed(R"(
input x: f32[128,32,64,126]
param w: f32[64,32,3,3]
c = conv2d(x, w)
y = amax(c, dim=1)
output y
)",
                        "kiln_conv_reduce"),
              two_groups);
  EXPECT_THAT(UnitNamed(kResidualChain, "kiln_conv_reduce", kA100),
              HasSubstr(held));
}

// Those of bench/gpu_templates.py, which run under the sanitizers.
TEST(ConvSpecTest, SmallPlansHoldTurnsToo) {
  EXPECT_THAT(UnitNamed(R"(
input x: f32[66,8,14,96]
param w: f32[48,8,3,3]
c = conv2d(x, w)
n = group_norm(c, num_groups=8)
r = add(n, c)
y = logsumexp(r, dim=1, keepdim=true)
output y
)",
                        "kiln_conv_reduce"),
              HasSubstr("kTurnHeldFor = 2;"));
  EXPECT_THAT(UnitNamed(R"(
input x: f32[132,8,18,34]
param w: f32[64,8,3,3]
c = conv2d(x, w)
y = softmax(c, dim=1)
output y
)",
                        "kiln_conv_softmax"),
              HasSubstr("kTurnHeldFor = 2;"));
}

TEST(ConvSpecTest, WhatNoElementReadsIsNoField) {
  EXPECT_THAT(UnitNamed(kResidualChain, "kiln_conv_reduce"),
              AllOf(HasSubstr("const float v1_mean ="),
                    Not(HasSubstr("  float v1_mean;"))));
}

// How often `part` stands in `text`.
int CountOf(const std::string& part, const std::string& text) {
  int count = 0;
  for (size_t at = text.find(part); at != text.npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// Products are what NVRTC takes most time for.
TEST(ConvSpecTest, LongProductsAreWrittenOnceAndCalledInALoop) {
  const std::string unit =
      UnitNamed(NormAfter("relu(c)"), "kiln_conv_statistics");
  EXPECT_THAT(unit, HasSubstr("kLoopsProducts = true"));
  // One for each tap: not for each pair of parts, nor all channels of a chunk.
  EXPECT_EQ(CountOf("\"wgmma.mma_async", unit), 9);
}

TEST(ConvSpecTest, ShortProductsAreNotInterruptedByALoop) {
  const std::string unit = UnitNamed(ReductionOf(48), "kiln_conv_reduce");
  EXPECT_THAT(unit, AllOf(HasSubstr("kProductCalls = 1;"),
                          HasSubstr("kLoopsProducts = false")));
}

// P2 without its bias, and what `rest` adds to it.
std::string ResidualUnit(const std::string& ops, const std::string& rest = "") {
  return UnitNamed(R"(
input x: f32[128,8,128,128]
param w: f32[64,8,3,3]
conv = conv2d(x, w)
norm = group_norm(conv, num_groups=16)
)" + ops + R"(
y = logsumexp(r, dim=1, keepdim=true)
output y
)" + rest,
                   "kiln_conv_reduce");
}

TEST(ConvSpecTest, FactorsOfPowersAreInConstantsBeforeThem) {
  EXPECT_THAT(
      ResidualUnit("t = tanh(norm)\nh = hardswish(t)\nr = add(h, conv)"),
      AllOf(HasSubstr("kSumFactor = 0x1.715476p+0f;"),
            HasSubstr("v1_scale = v1_rstd * 1.0f * 0x1p+1f;"),
            HasSubstr("HardswishOfTanhLess(v1_scaled, 0x1.715476p+0f)"),
            HasSubstr("v4_scaled = v3_scaled + v0_scaled;"),
            HasSubstr("return v4_scaled;"),
            HasSubstr("state.Value(0x1p+6f) + 0x1.555556p-1f;"),
            Not(HasSubstr("float v2"))));
  EXPECT_THAT(ResidualUnit("t = tanh(norm)\nr = add(conv, t)"),
              AllOf(HasSubstr("kiln::TanhLessOne(v1_scaled, 0x1.715476p+0f)"),
                    HasSubstr("v0_scaled"),
                    HasSubstr("state.Value(0x1p+6f) + 0x1p+0f;")));
  EXPECT_THAT(ResidualUnit("r = add(conv, norm)"),
              AllOf(HasSubstr("kSumFactor = 0x1p+0f;"),
                    HasSubstr("return 0x1.715476p+0f * v2;")));
}

TEST(ConvSpecTest, WhatOthersReadHasNoFactor) {
  EXPECT_THAT(ResidualUnit("t = tanh(norm)\nh = hardswish(t)\nr = add(h, t)"),
              AllOf(HasSubstr("kiln::TanhOfScaled(v1_scaled)"),
                    HasSubstr("HardswishInside(v2, 0x1.715476p+0f)")));
  EXPECT_THAT(ResidualUnit("t = tanh(norm)\nr = add(t, norm)"),
              AllOf(HasSubstr("fmaf(v0, channel.v1_scale, channel.v1_shift)"),
                    HasSubstr("kiln::TanhLessOne(0x1.715476p+1f * v1, "
                              "0x1.715476p+0f)"),
                    HasSubstr("fmaf(v1, 0x1.715476p+0f, v2_scaled)")));
  EXPECT_THAT(ResidualUnit("a = relu(conv)\nb = add(a, conv)\n"
                           "t = tanh(norm)\nr = add(t, b)"),
              AllOf(HasSubstr("kSumFactor = 0x1p+0f;"),
                    HasSubstr("const float v0 = sum * scale;")));
}

TEST(ConvSpecTest, AnExtremeHasTheSignOfItsChannel) {
  EXPECT_THAT(
      UnitNamed(kPoolChain, "kiln_conv_held"),
      AllOf(HasSubstr("  float sign;"), HasSubstr("copysignf(1.0f, "),
            HasSubstr("kPoolsEarly = true"), Not(HasSubstr("StorePooled("))));
}

TEST(ConvSpecTest, StatisticsComeFromRegistersWhereNoOpReadsATensor) {
  EXPECT_THAT(
      UnitNamed(NormAfter("gelu(c)"), "kiln_conv_statistics"),
      AllOf(HasSubstr("kTailInRegisters = true"),
            HasSubstr("kComputesFirst = true"), HasSubstr("void StoreRead(")));
  EXPECT_THAT(UnitNamed(NormAfter("add(c, z)"), "kiln_conv_statistics"),
              AllOf(HasSubstr("kTailInRegisters = false"),
                    Not(HasSubstr("void StoreRead("))));
}

// conv_scales_channels and conv_scales_images of bench/gpu_templates.py, whose
// input comes in bands of twelve rows: tiles lie in one, and blocks have
// several.
TEST(ConvSpecTest, TilesOfABlockHaveScalesOfTheirOwn) {
  const std::string conv = R"(
input x: f32[132,16,48,40]
param w: f32[32,16,1,1]
c = conv2d(x, w)
)";
  const auto scales_tiles = AllOf(
      HasSubstr("kTileH = 4, kTileW = 40;"), HasSubstr("kTilesPerBlock = 6;"),
      HasSubstr("kChannelRows = false;"), HasSubstr("kScales = true;"));
  EXPECT_THAT(
      UnitNamed(conv + "y = amax(c, dim=1)\noutput y\n", "kiln_conv_reduce"),
      scales_tiles);
  EXPECT_THAT(
      UnitNamed("grade tf32" + conv + "y = amax(c, dim=[2,3])\noutput y\n",
                "kiln_conv_reduce_images"),
      scales_tiles);
}

}  // namespace
}  // namespace kiln
