// Totals of what is computed of rows' reductions, taken row by row first.
// Prevents that losses, which end in such totals, read their elements twice,
// and that totals are split whose rows no kernel holds.
#include "jit/compile/split_totals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fmt/format.h"
#include "jit/compile/schedule_rewrites.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Of logits `x`, what `total` makes of the logarithms of softmax.
std::string LossOf(const std::string& x, const std::string& total) {
  return fmt::format(
      "input x: {}\nl = logsumexp(x, dim=1, keepdim=true)\nd = sub(x, l)\n"
      "y = {}\noutput y\n",
      x, total);
}

TEST(SplitTotalsTest, AKernelTakesRowsThroughBoth) {
  for (const char* total :
       {"sum(d)", "mean(d)", "amax(d, dim=[0, 1])", "amin(d)"}) {
    const Schedule schedule = Fastest(LossOf("f32[4096,1000]", total));
    ASSERT_EQ(schedule.kernels.size(), 2u) << total;
    ASSERT_TRUE(schedule.kernels[0].row_work.has_value()) << total;
    EXPECT_EQ(schedule.kernels[0].row_work->reductions, 2) << total;
    const Node& rest = schedule.lowered.nodes[schedule.kernels[1].group.anchor];
    const int rows = ValueOf(rest.operands[0]);
    EXPECT_EQ(schedule.lowered.values[rows].desc.dims, (Dims{4096, 1}))
        << total;
    EXPECT_EQ(schedule.lowered.values[rest.results[0]].desc.dims, Dims{})
        << total;
  }
}

TEST(SplitTotalsTest, ResultsKeepTheirDims) {
  const LoweredPlan plan =
      LoweredOf(LossOf("f32[16,1000,4]", "mean(d, dim=[0, 1], keepdim=true)"));
  const std::set<int> totals = TotalsOfRows(plan);
  ASSERT_EQ(totals.size(), 1u);
  const LoweredPlan split = SplitTotals(plan, totals);
  const Node& rest = split.nodes.back();
  EXPECT_EQ(split.values[rest.results[0]].desc.dims, (Dims{1, 1, 4}));
  EXPECT_EQ(split.values[ValueOf(rest.operands[0])].desc.dims,
            (Dims{16, 1, 4}));
  EXPECT_EQ(rest.results, plan.nodes.back().results);
}

TEST(SplitTotalsTest, OthersStayWhole) {
  const auto totals = [](const std::string& text) {
    return TotalsOfRows(LoweredOf(text));
  };
  EXPECT_THAT(totals(LossOf("f32[64,100]", "logsumexp(d, dim=[0, 1])")),
              IsEmpty())
      << "parts would be rounded";
  EXPECT_THAT(totals(LossOf("f32[64,100]", "sum(d, dim=1)")), IsEmpty())
      << "the same rows";
  EXPECT_THAT(totals(LossOf("f32[64,100]", "sum(d, dim=0)")), IsEmpty())
      << "columns";
  EXPECT_THAT(totals("input x: f32[64,100]\ns = sum(x)\n"
                     "l = logsumexp(x, dim=1)\noutput s\noutput l\n"),
              IsEmpty())
      << "not computed of rows";
}

// As of masks, whose channels lie side by side.
TEST(SplitTotalsTest, RowsMayLieSideBySide) {
  const Schedule schedule = Fastest(
      "input x: f32[16,21,256,256]\ninput t: f32[16,21,256,256]\n"
      "p = softmax(x, dim=1)\nd = sub(p, t)\ns = mul(d, d)\n"
      "y = mean(s)\noutput y\n");
  EXPECT_THAT(SourceFilesOf(schedule),
              ElementsAre("row_warp_chain.cu", "reduce.cu"));
}

// They are read twice in any case.
TEST(SplitTotalsTest, RowsThatNoKernelHoldsStayWhole) {
  const std::string text = LossOf("f32[2,40000000]", "sum(d)");
  const Schedule schedule = Fastest(text);
  EXPECT_EQ(schedule.lowered.nodes.size(), 3u);
  EXPECT_THAT(RewritesOf(*Canonicalize(*ParsePlanText(text)), schedule),
              IsEmpty());
}

TEST(SplitTotalsTest, ExplainSaysSo) {
  const std::string text = LossOf("f32[4096,1000]", "sum(d)");
  EXPECT_THAT(
      RewritesOf(*Canonicalize(*ParsePlanText(text)), Fastest(text)),
      ElementsAre("taken row by row first, by the kernel that takes these rows "
                  "through the reduction before: v2 = sum(v1, dim=[0,1])"));
}

}  // namespace
}  // namespace kiln
