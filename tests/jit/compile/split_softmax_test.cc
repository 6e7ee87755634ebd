// Softmax over rows side by side as the reductions and ops that it is made of.
// Prevents that it goes through shared memory where registers hold the rows,
// which takes up to twice as long, and that what is split is no longer held.
#include "jit/compile/split_softmax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fmt/format.h"
#include "jit/compile/schedule_rewrites.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ColumnSoftmaxOf(const std::string& x, int dim) {
  return fmt::format("input x: {}\ny = softmax(x, dim={})\noutput y\n", x, dim);
}

TEST(SplitSoftmaxTest, RegistersHoldRowsSideBySide) {
  for (const Target& target : {kH100, kA100, kT4}) {
    for (const std::string& text : {ColumnSoftmaxOf("f32[16,21,128,128]", 1),
                                    ColumnSoftmaxOf("f16[4,144,64,64]", 1),
                                    ColumnSoftmaxOf("f32[4,72,38,38]", 2),
                                    ColumnSoftmaxOf("bf16[4096,80,3]", 1)}) {
      const Schedule schedule = Fastest(text, target);
      EXPECT_THAT(SourceFilesOf(schedule), ElementsAre("row_warp_chain.cu"))
          << text;
    }
  }
}

TEST(SplitSoftmaxTest, LongRowsHaveManyThreadsAboveEachOther) {
  const Schedule schedule = Fastest(ColumnSoftmaxOf("f32[2,2048,7,7]", 1));
  ASSERT_THAT(SourceFilesOf(schedule), ElementsAre("row_warp_chain.cu"));
  EXPECT_EQ(schedule.kernels[0].rows->lanes, 64);
}

TEST(SplitSoftmaxTest, WhatRegistersDoNotHoldStaysWhole) {
  for (const char* x : {"f32[1,3300,4,8]", "f32[4,65536,64]"}) {
    EXPECT_THAT(SourceFilesOf(Fastest(ColumnSoftmaxOf(x, 1))),
                Not(Contains("row_warp_chain.cu")))
        << x;
  }
}

// Blocks of a few elements for each thread, which registers hold all the same.
TEST(SplitSoftmaxTest, TinyImagesStayWhole) {
  const Schedule schedule = Fastest(ColumnSoftmaxOf("f32[64,256,14,14]", 2));
  ASSERT_THAT(SourceFilesOf(schedule), ElementsAre("row_warp_chain.cu"));
  EXPECT_EQ(schedule.kernels[0].row_work->reductions, 1);
}

TEST(SplitSoftmaxTest, RowsOfNeighboursStayWhole) {
  const LoweredPlan& plan = Fastest(ColumnSoftmaxOf("f32[4096,80]", 1)).lowered;
  EXPECT_EQ(plan.nodes.size(), 2u);
}

TEST(SplitSoftmaxTest, AConvolutionKeepsItsOwn) {
  const Schedule schedule = Fastest(
      "input x: f32[8,16,40,40]\nparam w: f32[32,16,3,3]\n"
      "c = conv2d(x, w, padding=1)\ny = softmax(c, dim=1)\noutput y\n");
  EXPECT_EQ(schedule.lowered.nodes.size(), 3u);
  EXPECT_THAT(SourceFilesOf(schedule),
              ElementsAre("pack_halves.cu", "conv_wgmma.cu"));
}

TEST(SplitSoftmaxTest, OneOfTwoIsSplit) {
  const Schedule schedule = Fastest(
      "input x: f32[2,64,33,33]\ninput z: f32[1,3300,4,8]\n"
      "a = softmax(x, dim=1)\nb = softmax(z, dim=1)\noutput a\noutput b\n");
  EXPECT_THAT(SourceFilesOf(schedule),
              ElementsAre("row_warp_chain.cu", "reduce.cu", "pointwise.cu"));
}

TEST(SplitSoftmaxTest, ExplainSaysSo) {
  const std::string text = ColumnSoftmaxOf("f32[16,21,128,128]", 1);
  EXPECT_THAT(
      RewritesOf(*Canonicalize(*ParsePlanText(text)), Fastest(text)),
      ElementsAre("reductions and ops that it is made of, between which "
                  "registers hold the rows: v0 = softmax(i0, dim=1)"));
}

// What long ops have made of an element is computed once, and held.
TEST(SplitSoftmaxTest, EachPowerIsComputedOnce) {
  const std::string unit =
      LastUnitOf(Fastest("input x: f32[16,21,128,128]\ng = gelu(x)\n"
                         "y = softmax(g, dim=1)\noutput y\n"));
  const auto count = [&](const std::string& call) {
    int found = 0;
    for (size_t at = unit.find(call); at != std::string::npos;
         at = unit.find(call, at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("kiln::Gelu"), 1);
  EXPECT_EQ(count("kiln::Exp("), 1);
  EXPECT_THAT(unit, HasSubstr("float v0;\n"));
  EXPECT_THAT(unit, HasSubstr("made.v1_power = v1_power;"));
}

}  // namespace
}  // namespace kiln
