// What the units of convolutions on Hopper say of channels, and of where
// statistics are taken.
#include "jit/compile/conv_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "jit/compile/specialize.h"
#include "jit/plan/plan_text.h"
#include "tests/jit/compile/chain_plans.h"

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Target kH100 = {"sm_90a", 132};
const Target kA100 = {"sm_80", 108};

// The unit whose kernel is `symbol`, empty without one.
std::string UnitOf(const std::string& text, const std::string& symbol,
                   const Target& target = kH100) {
  const Schedule schedule =
      MakeSchedules(*Canonicalize(*ParsePlanText(text)), target).front();
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
  EXPECT_THAT(UnitOf(kResidualChain, "kiln_conv_reduce"),
              AllOf(HasSubstr("struct alignas(8) Channel {"),
                    HasSubstr("fmaf(v0, channel.v1_scale, channel.v1_shift)"),
                    HasSubstr("kSharesChannels = true")));
  EXPECT_THAT(UnitOf(kResidualChain, "kiln_conv_reduce", kA100),
              AllOf(HasSubstr("channel.v1_scale"),
                    HasSubstr("kSharesChannels = false")));
}

TEST(ConvSpecTest, WhatNoElementReadsIsNoField) {
  EXPECT_THAT(UnitOf(kResidualChain, "kiln_conv_reduce"),
              AllOf(HasSubstr("const float v1_mean ="),
                    Not(HasSubstr("  float v1_mean;"))));
}

TEST(ConvSpecTest, AnExtremeHasTheSignOfItsChannel) {
  EXPECT_THAT(
      UnitOf(kPoolChain, "kiln_conv_statistics"),
      AllOf(HasSubstr("  float sign;"), HasSubstr("copysignf(1.0f, "),
            HasSubstr("kHasExtremes = true"), HasSubstr("void StoreExtreme(")));
}

TEST(ConvSpecTest, StatisticsComeFromRegistersWhereNoOpReadsATensor) {
  EXPECT_THAT(
      UnitOf(NormAfter("gelu(c)"), "kiln_conv_statistics"),
      AllOf(HasSubstr("kTailInRegisters = true"),
            HasSubstr("kComputesFirst = true"), HasSubstr("void StoreRead(")));
  EXPECT_THAT(UnitOf(NormAfter("add(c, z)"), "kiln_conv_statistics"),
              AllOf(HasSubstr("kTailInRegisters = false"),
                    Not(HasSubstr("void StoreRead("))));
}

}  // namespace
}  // namespace kiln
