// What ops behind a convolution read ahead, two neighbours at a time
// (kernel_sources/conv_beside.cuh). Prevents that it is taken for granted where
// neighbours are not aligned, tensors not as large, or something in between is
// stored.
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

// The unit of a convolution of one tap, and ops of its result c that make y.
std::string UnitBeside(const std::string& ops, const std::string& type = "f16",
                       int width = 56) {
  const Schedule schedule = Fastest(
      fmt::format("input x: {0}[32,64,56,{1}]\ninput r: {0}[32,256,56,{1}]\n"
                  "input q: {0}[32,256,56,{1}]\ninput row: {0}[{1}]\n"
                  "param w: {0}[256,64,1,1]\nparam s: {0}[256,1,1]\n"
                  "c = conv2d(x, w)\n{2}\noutput y\n",
                  type, width, ops),
      kH100);
  return LastUnitOf(schedule);
}

TEST(ConvBesideTest, ReadsPairsAhead) {
  const std::string unit =
      UnitBeside("a = add(c, r)\nb = mul(a, q)\ny = relu(b)");
  EXPECT_THAT(unit, HasSubstr("kReadsBeside = true"));
  EXPECT_THAT(unit, HasSubstr("kiln::LoadPairIf<kAligned>(inside, t.i"));
  EXPECT_THAT(unit, HasSubstr("kiln::OfPair<kiln::Float16, kHalf>(pair.i"));
  EXPECT_THAT(unit, HasSubstr("kiln::ArePairsAligned(t.output0, t.i"));
}

TEST(ConvBesideTest, WhatAChannelHasInCommonIsNoneOfIt) {
  EXPECT_THAT(UnitBeside("m = mul(c, s)\ny = add(m, r)", "bf16"),
              HasSubstr("kReadsBeside = true"));
}

TEST(ConvBesideTest, OneTensorIsReadOnce) {
  const std::string unit =
      UnitBeside("a = add(c, r)\nt = tanh(a)\nm = mul(t, r)\ny = add(m, q)");
  size_t loads = 0;
  for (size_t at = unit.find("LoadPairIf"); at != std::string::npos;
       at = unit.find("LoadPairIf", at + 1)) {
    ++loads;
  }
  EXPECT_EQ(loads, 2);
}

TEST(ConvBesideTest, WideNumbersTakeTwoRegistersForAPair) {
  const Schedule schedule = Fastest(R"(
input x: f32[16,64,28,28]
param w: f32[64,64,3,3]
c = conv2d(x, w, padding=1)
a = add(c, x)
y = relu(a)
output y
)",
                                    kH100);
  const Kernel& kernel = schedule.kernels.back();
  const std::string unit = WriteUnit(MakeKernelSpec(schedule, kernel));
  EXPECT_THAT(unit, HasSubstr("kiln::PairOf<float>::Type i"));
  EXPECT_THAT(unit, HasSubstr("kChannelsAhead = 4"));
  const int64_t pairs = kernel.conv->tiles_n * 8 > 64 ? 2 : 1;  // of a lane
  EXPECT_EQ(kernel.conv->BesideRegisters(kernel.demands), 2 * 4 * pairs * 2);
}

TEST(ConvBesideTest, OthersReadElementByElement) {
  const auto reads_none = Not(HasSubstr("kReadsBeside = true"));
  EXPECT_THAT(UnitBeside("a = add(c, row)\ny = add(a, r)"), reads_none);
  EXPECT_THAT(UnitBeside("y = add(c, r)", "f32", 57), reads_none);
  EXPECT_THAT(UnitBeside("a = add(c, r)\ny = relu(a)\noutput a"), reads_none);
  EXPECT_THAT(UnitBeside("a = add(c, r)\ny = mean(a, dim=[2,3])"), reads_none);
  EXPECT_THAT(UnitBeside("y = relu(c)"), reads_none);
}

}  // namespace
}  // namespace kiln
