// Statistics of convolutions that come from correlations of the input. Prevents
// that P2 multiplies everything twice in tf32, that fp32 loses digits by
// cancellation, and that small plans wait for two kernels instead of one.
#include "jit/compile/correlation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fmt/format.h"
#include "jit/compile/conv_states.h"
#include "jit/compile/schedule_report.h"
#include "jit/compile/specialize.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// The largest of the normalised channels of a convolution.
std::string Chain(const std::string& x, const std::string& w,
                  const std::string& attributes = "",
                  const std::string& between = "c = conv2d(x, w{})",
                  const std::string& grade = "tf32") {
  return fmt::format(
      "grade {}\ninput x: f32[{}]\nparam w: f32[{}]\n{}\n"
      "n = group_norm(c, num_groups=8)\nt = tanh(n)\n"
      "y = logsumexp(t, dim=1)\noutput y\n",
      grade, x, w, fmt::format(fmt::runtime(between), attributes));
}

const Tuning kAlways = {.correlations = 1};

// Null: none does.
const Kernel* CorrelatingKernelOf(const Schedule& schedule) {
  const auto found = std::find_if(
      schedule.kernels.begin(), schedule.kernels.end(),
      [](const Kernel& kernel) { return kernel.correlation.has_value(); });
  return found == schedule.kernels.end() ? nullptr : &*found;
}

bool Correlates(const std::string& text, const Tuning& tuning = {}) {
  return CorrelatingKernelOf(Fastest(text, kH100, tuning)) != nullptr;
}

const char kLarge[] = "128,8,128,128";
const char kSmall[] = "2,8,40,40";
const char kFilter[] = "64,8,3,3";

TEST(CorrelationTest, LargeChainsTakeThemInTf32Alone) {
  EXPECT_TRUE(Correlates(Chain(kLarge, kFilter)));
  const std::string fp32 =
      Chain(kLarge, kFilter, "", "c = conv2d(x, w{})", "fp32");
  EXPECT_FALSE(Correlates(fp32));
  EXPECT_FALSE(Correlates(fp32, kAlways)) << "by cancellation";
}

TEST(CorrelationTest, SmallOnesOnlyWhereAskedTo) {
  EXPECT_FALSE(Correlates(Chain(kSmall, kFilter)));
  EXPECT_TRUE(Correlates(Chain(kSmall, kFilter), kAlways));
}

TEST(CorrelationTest, WhatTheTemplateDoesNotTakeStaysAsItIs) {
  EXPECT_FALSE(Correlates(Chain("2,9,40,40", "64,9,3,3"), kAlways));
  EXPECT_FALSE(Correlates(Chain(kSmall, "64,8,4,3"), kAlways));
  EXPECT_FALSE(Correlates(Chain(kSmall, kFilter, ", stride=2"), kAlways));
  EXPECT_FALSE(Correlates(Chain(kSmall, kFilter, ", dilation=2"), kAlways));
  EXPECT_FALSE(Correlates(Chain(kSmall, "64,4,3,3", ", groups=2"), kAlways));
}

// A square is no sum of products of two.
TEST(CorrelationTest, NothingLiesBetweenTheConvolutionAndItsNorm) {
  EXPECT_FALSE(Correlates(
      Chain(kSmall, kFilter, "", "a = conv2d(x, w{})\nc = relu(a)"), kAlways));
}

TEST(CorrelationTest, RanksOfTilesBeginBehindThem) {
  const std::string text = Chain(kLarge, kFilter);
  EXPECT_FALSE(Correlates(text, {.conv = 1}));
  const Schedule first = Fastest(text);
  const Schedule tiles = Fastest(text, kH100, {.conv = 1});
  EXPECT_EQ(first.kernels.back().conv, tiles.kernels.back().conv)
      << "the fastest, too";
}

TEST(CorrelationTest, TuningTriesWhatWasNotPredictedToBeFaster) {
  const auto tries = [](const std::string& text) {
    const CanonicalPlan plan = *Canonicalize(*ParsePlanText(text));
    const std::vector<Tuning> all = Alternatives(plan, kH100, 8);
    return std::count(all.begin(), all.end(), kAlways);
  };
  EXPECT_EQ(tries(Chain(kSmall, kFilter)), 1);
  EXPECT_EQ(tries(Chain(kLarge, kFilter)), 0) << "it is what is done";
  EXPECT_EQ(tries(Chain(kSmall, "64,8,4,3")), 0);
}

// Whoever needs them finds one state for each group, and what the first kernel
// leaves for the second behind all of these.
TEST(CorrelationTest, StatesAreWholeAndInFrontOfTheSums) {
  const Schedule schedule = Fastest(Chain(kSmall, kFilter), kH100, kAlways);
  const Kernel& kernel = *CorrelatingKernelOf(schedule);
  EXPECT_EQ(SplitsOf(schedule, kernel), 1);
  EXPECT_EQ(BytesOfStates(schedule, kernel), 2 * 8 * 12);
  const int64_t sums =
      CorrelationBytes(kernel.conv->problem, *kernel.correlation);
  EXPECT_EQ(BytesOfPartials(schedule, kernel), 2 * 8 * 12 + sums);
  const std::string reader =
      WriteUnit(MakeKernelSpec(schedule, schedule.kernels.back()));
  EXPECT_THAT(reader, HasSubstr("kiln::MergedStates<1>("));
}

TEST(CorrelationTest, ABlockHasAPartOfAnImage) {
  const Schedule schedule = Fastest(Chain(kLarge, kFilter));
  const Kernel& kernel = *CorrelatingKernelOf(schedule);
  const KernelSpec spec = MakeKernelSpec(schedule, kernel);
  ASSERT_EQ(spec.entries.size(), 2);
  EXPECT_EQ(spec.entries[0].symbol, "kiln_correlate");
  EXPECT_EQ(spec.entries[0].grid[0], 128 * kernel.correlation->strips);
  EXPECT_EQ(spec.entries[1].grid[0], 128);
  const Schedule wide = Fastest(Chain("2,8,40,300", kFilter), kH100, kAlways);
  EXPECT_EQ(CorrelatingKernelOf(wide)->correlation->column_blocks, 3);
}

TEST(CorrelationTest, ExplainShowsWhatElseThereWas) {
  const auto report = [](const std::string& text) {
    const ScheduleReport all =
        ReportSchedules(*Canonicalize(*ParsePlanText(text)), kH100, {});
    return all.variants.front().kernels[1];
  };
  const KernelReport large = report(Chain(kLarge, kFilter));
  EXPECT_THAT(large.why, HasSubstr("correlations of the input"));
  EXPECT_TRUE(large.candidates.front().chosen);
  EXPECT_EQ(large.candidates.front().kind, "correlations of the input");
  const KernelReport small = report(Chain(kSmall, kFilter));
  EXPECT_THAT(small.why, Not(HasSubstr("correlations of the input")));
  EXPECT_THAT(small.candidates,
              Contains(testing::Field(&ScheduleCandidate::kind,
                                      "correlations of the input")));
}

}  // namespace
}  // namespace kiln
