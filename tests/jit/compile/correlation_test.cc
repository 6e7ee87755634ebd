// Statistics of convolutions that come from correlations of the input. Prevents
// that P2 multiplies everything twice in tf32, that fp32 loses digits by
// cancellation, and that small plans wait for two kernels instead of one.
#include "jit/compile/correlation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fmt/format.h"
#include "jit/compile/conv_states.h"
#include "jit/compile/rounding.h"
#include "jit/compile/schedule_report.h"
#include "jit/compile/specialize.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The largest of the normalised channels of a convolution.
std::string Correlated(const std::string& x, const std::string& w,
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
  return Fastest(text, kH100, tuning).CountCorrelations() > 0;
}

const char kLarge[] = "128,8,128,128";
const char kSmall[] = "2,8,40,40";
const char kStemFilter[] = "64,8,3,3";

TEST(CorrelationTest, LargeChainsTakeThemInTf32Alone) {
  EXPECT_TRUE(Correlates(Correlated(kLarge, kStemFilter)));
  const std::string fp32 =
      Correlated(kLarge, kStemFilter, "", "c = conv2d(x, w{})", "fp32");
  EXPECT_FALSE(Correlates(fp32));
  EXPECT_FALSE(Correlates(fp32, kAlways)) << "by cancellation";
}

TEST(CorrelationTest, SmallOnesOnlyWhereAskedTo) {
  EXPECT_FALSE(Correlates(Correlated(kSmall, kStemFilter)));
  EXPECT_TRUE(Correlates(Correlated(kSmall, kStemFilter), kAlways));
}

TEST(CorrelationTest, WhatTheTemplateDoesNotTakeStaysAsItIs) {
  EXPECT_FALSE(Correlates(Correlated("2,9,40,40", "64,9,3,3"), kAlways));
  EXPECT_FALSE(Correlates(Correlated(kSmall, "64,8,4,3"), kAlways));
  EXPECT_FALSE(
      Correlates(Correlated(kSmall, kStemFilter, ", stride=2"), kAlways));
  EXPECT_FALSE(
      Correlates(Correlated(kSmall, kStemFilter, ", dilation=2"), kAlways));
  EXPECT_FALSE(
      Correlates(Correlated(kSmall, "64,4,3,3", ", groups=2"), kAlways));
}

// A square is no sum of products of two.
TEST(CorrelationTest, NothingLiesBetweenTheConvolutionAndItsNorm) {
  EXPECT_FALSE(Correlates(
      Correlated(kSmall, kStemFilter, "", "a = conv2d(x, w{})\nc = relu(a)"),
      kAlways));
}

TEST(CorrelationTest, RanksOfTilesBeginBehindThem) {
  const std::string text = Correlated(kLarge, kStemFilter);
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
  EXPECT_EQ(tries(Correlated(kSmall, kStemFilter)), 1);
  EXPECT_EQ(tries(Correlated(kLarge, kStemFilter)), 0) << "it is what is done";
  EXPECT_EQ(tries(Correlated(kSmall, "64,8,4,3")), 0);
}

// Whoever needs them finds one state for each group, and what the first kernel
// leaves for the second behind all of these.
TEST(CorrelationTest, StatesAreWholeAndInFrontOfTheSums) {
  const Schedule schedule =
      Fastest(Correlated(kSmall, kStemFilter), kH100, kAlways);
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

// Prevents a kernel that packs weights as nobody reads them.
TEST(CorrelationTest, WeightsArePackedForTilesAlone) {
  for (const Schedule& schedule :
       {Fastest(Correlated(kSmall, kStemFilter), kH100, kAlways),
        Fastest(Correlated(kLarge, kStemFilter))}) {
    ASSERT_EQ(schedule.kernels.size(), 3);
    const Kernel& tiles = schedule.kernels.back();
    EXPECT_EQ(tiles.packed->area, Area::kPrepared);
    EXPECT_EQ(schedule.prepared_bytes,
              RoundUp(tiles.conv->packed_bytes(), 256));
    EXPECT_FALSE(CorrelatingKernelOf(schedule)->packed.has_value());
  }
}

TEST(CorrelationTest, ABlockHasAPartOfAnImage) {
  const Schedule schedule = Fastest(Correlated(kLarge, kStemFilter));
  const Kernel& kernel = *CorrelatingKernelOf(schedule);
  const KernelSpec spec = MakeKernelSpec(schedule, kernel);
  ASSERT_EQ(spec.entries.size(), 2);
  EXPECT_EQ(spec.entries[0].symbol, "kiln_correlate");
  EXPECT_EQ(spec.entries[0].grid[0], 128 * kernel.correlation->strips);
  EXPECT_EQ(spec.entries[1].grid[0], 128);
  const Schedule wide =
      Fastest(Correlated("2,8,40,300", kStemFilter), kH100, kAlways);
  EXPECT_EQ(CorrelatingKernelOf(wide)->correlation->column_blocks, 3);
}

// Of the kernel with an entry of this name.
KernelReport Reported(const std::string& text, const std::string& symbol,
                      const Tuning& tuning = {}) {
  const ScheduleReport report =
      ReportSchedules(*Canonicalize(*ParsePlanText(text)), kH100, tuning);
  for (const KernelReport& kernel : report.variants.front().kernels) {
    if (kernel.symbol == symbol) return kernel;
  }
  ADD_FAILURE() << "there is no " << symbol;
  return {};
}

TEST(CorrelationTest, ExplainShowsWhatElseThereWas) {
  const KernelReport large =
      Reported(Correlated(kLarge, kStemFilter), "kiln_correlate");
  EXPECT_THAT(large.why, HasSubstr("correlations of the input"));
  EXPECT_TRUE(large.candidates.front().chosen);
  EXPECT_EQ(large.candidates.front().kind, "correlations of the input");
  const KernelReport small =
      Reported(Correlated(kSmall, kStemFilter), "kiln_conv_statistics");
  EXPECT_THAT(small.why, Not(HasSubstr("correlations of the input")));
  EXPECT_THAT(small.candidates,
              Contains(testing::Field(&ScheduleCandidate::kind,
                                      "correlations of the input")));
}

TEST(CorrelationTest, ExplainSaysWhetherTheyWereAskedFor) {
  const auto why = [](const char* images, const Tuning& tuning) {
    return Reported(Correlated(images, kStemFilter), "kiln_correlate", tuning)
        .why;
  };
  const Tuning both = {.conv = 1, .correlations = 1};
  EXPECT_THAT(why(kLarge, {}), StartsWith("fewest predicted cycles; stat"));
  EXPECT_THAT(why(kLarge, kAlways), StartsWith("fewest predicted cycles; "));
  EXPECT_THAT(why(kLarge, both), StartsWith("fewest predicted cycles; "));
  EXPECT_THAT(why(kSmall, kAlways),
              StartsWith("the variant correlations1 asks for correlations; "));
  EXPECT_THAT(why(kSmall, both),
              StartsWith("the variant conv1+correlations1 asks for corr"));
  const auto reader = [](const Tuning& tuning) {
    return Reported(Correlated(kLarge, kStemFilter), "kiln_conv_reduce", tuning)
        .why;
  };
  EXPECT_THAT(reader({.conv = 1}),
              StartsWith("the variant conv1 asks for no correlations; "));
  EXPECT_THAT(reader(both), StartsWith("fewest predicted cycles; "));
  EXPECT_THAT(reader({.conv = 2, .correlations = 1}),
              StartsWith("the variant conv2+correlations1 asks for tile number "
                         "2 instead of the first; "));
}

TEST(CorrelationTest, ExplainShowsThemWhereTheirCyclesBelong) {
  const KernelReport kernel =
      Reported(Correlated(kSmall, kStemFilter), "kiln_correlate", kAlways);
  ASSERT_FALSE(kernel.candidates.empty());
  EXPECT_FALSE(kernel.candidates.front().chosen);
  double before = 0.0;
  for (const ScheduleCandidate& candidate : kernel.candidates) {
    if (!candidate.fits) break;
    EXPECT_GE(*candidate.cycles, before);
    before = *candidate.cycles;
    EXPECT_EQ(candidate.chosen, candidate.kind == "correlations of the input");
  }
}

}  // namespace
}  // namespace kiln
