// Signals, images of one row, that become images of many. Prevents that blocks
// have one tile each, that a row's end is taken for the signal's, and that
// signals are folded where an op can tell.
#include "jit/compile/fold_signals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fmt/format.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/schedule_rewrites.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// A convolution of three taps, and ops of its result c.
std::string Signal(const std::string& ops,
                   const std::string& attributes = "padding=[0,1]",
                   int length = 4096) {
  return fmt::format(
      "input x: f16[4,64,1,{0}]\ninput r: f16[4,64,1,{0}]\n"
      "input row: f16[{0}]\ninput places: f16[1,1,1,{0}]\n"
      "param w: f16[64,64,1,3]\nparam k1: f16[64,64,1,1]\n"
      "param each: f16[64,1,1,3]\nparam s: f16[1,64,1,1]\n"
      "c = conv2d(x, w, {1})\n{2}\noutput y\n",
      length, attributes, ops);
}

Dims DimsOfInput(const std::string& text, const Target& target = kH100) {
  return Fastest(text, target).lowered.values[0].desc.dims;
}

const Dims kFolded = {4, 64, 16, 256};

bool NodeWraps(const Schedule& schedule, const Kernel& kernel) {
  const int anchor = kernel.group.anchor;
  return anchor >= 0 && schedule.lowered.nodes[anchor].wraps_rows;
}

TEST(FoldSignalsTest, BlocksHaveTilesOneBelowTheOther) {
  const Schedule schedule = Fastest(Signal("y = relu(c)"), kH100);
  EXPECT_EQ(schedule.lowered.values[0].desc.dims, kFolded);
  EXPECT_TRUE(schedule.kernels.back().conv->problem.wraps_rows);
  EXPECT_GT(Fastest(Signal("y = relu(c)"), {"sm_90a", 2})
                .kernels.back()
                .conv->tiles_per_block,
            1);
}

// Nor can a head of one tap, whose threads have pixels of any rows.
TEST(FoldSignalsTest, FewResultsOfOneTapCannotTell) {
  EXPECT_EQ(DimsOfInput("input x: f16[4,64,1,4096]\nparam w: f16[64,64,1,3]\n"
                        "param h: f16[1,64,1,1]\n"
                        "c = conv2d(x, w, padding=[0,1])\nr = relu(c)\n"
                        "y = conv2d(r, h)\noutput y\n"),
            kFolded);
}

TEST(FoldSignalsTest, OpsOfAllPlacesAlikeCannotTell) {
  for (const char* ops : {
           "a = add(c, r)\ny = relu(a)",
           "a = mul(c, s)\ny = mul(a, places)",
           "y = conv2d(c, k1)",
           "d = conv2d(c, w, padding=[0,2], dilation=[1,2])\ny = add(d, x)",
           "y = group_norm(c, num_groups=8)",
           "y = mean(c, dim=[2,3])",
       }) {
    EXPECT_EQ(DimsOfInput(Signal(ops)), kFolded) << ops;
  }
}

TEST(FoldSignalsTest, OthersCan) {
  const Dims as_it_is = {4, 64, 1, 4096};
  for (const char* ops : {
           "y = add(c, row)",
           "y = max_pool2d(c, kernel_size=[1,2])",
           "y = conv2d(c, w)",
           "y = conv2d(c, w, padding=[0,1], stride=[1,2])",
           "y = conv2d(c, each, padding=[0,1], groups=64)",
           "y = softmax(c, dim=1)",
           "y = sum(c, dim=1)",
       }) {
    EXPECT_EQ(DimsOfInput(Signal(ops)), as_it_is) << ops;
  }
  EXPECT_EQ(DimsOfInput(Signal("y = relu(c)", "padding=[1,1]")), as_it_is);
  EXPECT_EQ(DimsOfInput(Signal("y = relu(c)"), kA100), as_it_is);
}

// Of 1,000 places there are no eight long rows, and a prime number is none.
TEST(FoldSignalsTest, LeavesShortSignalsAndThoseThatNothingDivides) {
  for (const int length : {1000, 4099}) {
    EXPECT_EQ(DimsOfInput(Signal("y = relu(c)", "padding=[0,1]", length)),
              (Dims{4, 64, 1, length}));
  }
}

TEST(FoldSignalsTest, ExplainSaysSo) {
  const CanonicalPlan plan =
      *Canonicalize(*ParsePlanText(Signal("y = relu(c)")));
  EXPECT_THAT(
      RewritesOf(plan, MakeSchedules(plan, kH100).front()),
      Contains(HasSubstr("signals of 4096 taken as images of 16 x 256")));
}

// Filters of one tap reach no other row.
TEST(FoldSignalsTest, OnlyFiltersOfSeveralTapsReadPastTheEndsOfRows) {
  const Schedule schedule = Fastest(Signal("y = conv2d(c, k1)"), kH100);
  std::vector<bool> wraps;
  for (const Node& node : schedule.lowered.nodes) {
    if (node.IsConvolution()) wraps.push_back(node.wraps_rows);
  }
  EXPECT_EQ(wraps, (std::vector<bool>{true, false}));
}

// Groups of two channels have no tensor cores.
TEST(FoldSignalsTest, SoDoConvolutionsWithoutTensorCores) {
  const Schedule schedule = Fastest(
      "input x: f32[2,16,1,4096]\nparam w: f32[16,2,1,3]\n"
      "y = conv2d(x, w, padding=[0,1], groups=8)\noutput y\n",
      kH100);
  const KernelSpec spec = MakeKernelSpec(schedule, schedule.kernels.at(0));
  EXPECT_EQ(spec.source_file, "conv2d.cu");
  EXPECT_THAT(spec.constants,
              Contains("static constexpr bool kWrapsRows = true;"));
}

// A single channel has a filter for each channel, too, and where registers are
// few no tile of warpgroups is offered: kernels that know nothing of such rows
// must not take it.
TEST(FoldSignalsTest, KernelsThatDoNotReadPastTheEndsOfRowsAreNotTaken) {
  const CanonicalPlan plan = *Canonicalize(
      *ParsePlanText("input x: f32[2,1,1,4096]\nparam w: f32[64,1,1,9]\n"
                     "y = conv2d(x, w, padding=[0,4])\noutput y\n"));
  for (const Room room :
       {Room::kTight, Room::kAmple, Room::kVast, Room::kPlain}) {
    for (const Schedule& schedule : MakeSchedules(plan, kH100, room)) {
      for (const Kernel& kernel : schedule.kernels) {
        if (!kernel.computes()) continue;
        EXPECT_EQ(NodeWraps(schedule, kernel), room != Room::kPlain);
        EXPECT_FALSE(kernel.depthwise.has_value());
        EXPECT_TRUE(!kernel.conv || kernel.conv->has_groups());
      }
    }
  }
}

}  // namespace
}  // namespace kiln
