// Transposed convolutions as ordinary ones whose channels are phases. Prevents
// that such a one takes tiles of a part of its phases again, two to five times
// as long, and that others, which lose by it, are computed so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "fmt/format.h"
#include "jit/compile/conv_problem.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

// Stride 8 along signals, 16 taps.
ConvProblem UpsamplingProblem() {
  ConvProblem problem;
  problem.input = {16, 256, 1, 1024};
  problem.output = {16, 128, 1, 8192};
  problem.kernel = {1, 16};
  problem.insert = {1, 8};
  problem.padding = {0, 11};  // of 4
  problem.transposed = true;
  return problem;
}

TEST(ChannelPhasesTest, PlacesHaveAllPhasesAsChannels) {
  const std::optional<ConvProblem> ordinary =
      PhasesAsChannels(UpsamplingProblem());
  ASSERT_TRUE(ordinary.has_value());
  EXPECT_EQ(ordinary->output, (Dims4{16, 1024, 1, 1025}));
  EXPECT_EQ(ordinary->kernel, (kiln::Pair{1, 2}));
  EXPECT_EQ(ordinary->insert, (kiln::Pair{1, 1}));
  EXPECT_EQ(ordinary->padding, (kiln::Pair{0, 1}));
  EXPECT_EQ(ordinary->channel_phases, (kiln::Pair{1, 8}));
  EXPECT_EQ(ordinary->before_result, (kiln::Pair{0, 4}));
  EXPECT_EQ(ordinary->result(), UpsamplingProblem().output);
}

// By a padding of a whole stride and more.
TEST(ChannelPhasesTest, PlacesThatPaddingCutsOffAreNotComputed) {
  ConvProblem problem = UpsamplingProblem();
  problem.padding[1] = 15 - 9;
  problem.output[3] = 8182;
  const std::optional<ConvProblem> ordinary = PhasesAsChannels(problem);
  ASSERT_TRUE(ordinary.has_value());
  EXPECT_EQ(ordinary->before_result[1], 1);
  EXPECT_EQ(ordinary->padding[1], 0);
  EXPECT_EQ(ordinary->output[3], 1023);
}

TEST(ChannelPhasesTest, OthersStayAsTheyAre) {
  const auto expect_stays = [](const char* what, auto change) {
    ConvProblem problem = UpsamplingProblem();
    change(&problem);
    EXPECT_FALSE(PhasesAsChannels(problem).has_value()) << what;
  };
  expect_stays("taps of unequal phases", [](ConvProblem* p) {
    p->kernel[1] = 15;
    p->padding[1] = 10;
  });
  expect_stays("groups", [](ConvProblem* p) { p->groups = 2; });
  expect_stays("a dilation", [](ConvProblem* p) { p->dilation[1] = 2; });
  expect_stays("an input in lines",
               [](ConvProblem* p) { p->input_is_laid = true; });
  expect_stays("one tap", [](ConvProblem* p) {
    p->kernel[1] = 8;
    p->padding[1] = 7;
  });
  expect_stays("two phases", [](ConvProblem* p) {
    p->kernel[1] = 4;
    p->insert[1] = 2;
    p->padding[1] = 2;
  });
  expect_stays("few channels", [](ConvProblem* p) { p->input[1] = 8; });
}

const ConvGeometry& UpsamplerOf(const Schedule& schedule) {
  for (const Kernel& kernel : schedule.kernels) {
    if (kernel.conv && kernel.computes()) return *kernel.conv;
  }
  ADD_FAILURE() << "no kernel on tensor cores";
  static const ConvGeometry none;
  return none;
}

std::string Upsampling(const std::string& rest, const char* dtype = "f16") {
  return fmt::format(
      "input x: {0}[16,256,1,1024]\nparam w: {0}[256,128,1,16]\n"
      "c = conv_transpose2d(x, w, stride=[1,8], padding=[0,4])\n{1}\n"
      "output y\n",
      dtype, rest);
}

TEST(ChannelPhasesTest, VocodersUpsampleByThem) {
  for (const char* dtype : {"f16", "f32"}) {
    const Schedule schedule = Fastest(Upsampling("y = relu(c)", dtype));
    const ConvGeometry& g = UpsamplerOf(schedule);
    EXPECT_TRUE(g.problem.has_channel_phases()) << dtype;
    EXPECT_TRUE(g.stores_sums && g.stores_phase_pairs()) << dtype;
    EXPECT_TRUE(g.walks_columns) << dtype;
    EXPECT_LE(g.blocks(), 132) << dtype;
    EXPECT_GE(g.blocks() * g.rounds(),
              g.channel_blocks() * 16 * g.tiles_across())
        << dtype;
  }
}

// No other tail knows where phases lie.
TEST(ChannelPhasesTest, WhatFollowsIsOnlyStored) {
  for (const char* rest : {"y = group_norm(c, num_groups=8)",
                           "y = softmax(c, dim=1)", "y = mean(c, dim=[2,3])"}) {
    EXPECT_FALSE(
        UpsamplerOf(Fastest(Upsampling(rest))).problem.has_channel_phases())
        << rest;
  }
}

}  // namespace
}  // namespace kiln
