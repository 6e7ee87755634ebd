// What is reported of schedules, and that it is what they are.
#include "jit/compile/schedule_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "jit/compile/schedule.h"
#include "jit/plan/plan_text.h"
#include "tests/jit/compile/chain_plans.h"
#include "tests/jit/compile/fastest_schedule.h"
#include "tests/jit/plan/plan_generator.h"

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

ScheduleReport ReportOf(const std::string& text, const Target& target) {
  return ReportSchedules(*Canonicalize(*ParsePlanText(text)), target);
}

const KernelReport& KernelOf(const VariantReport& variant,
                             const std::string& symbol) {
  static const KernelReport kNone;
  const auto found = std::find_if(
      variant.kernels.begin(), variant.kernels.end(),
      [&](const KernelReport& kernel) { return kernel.symbol == symbol; });
  EXPECT_NE(found, variant.kernels.end()) << symbol;
  return found == variant.kernels.end() ? kNone : *found;
}

int64_t CountChosen(const KernelReport& kernel) {
  return std::count_if(kernel.candidates.begin(), kernel.candidates.end(),
                       [](const ScheduleCandidate& c) { return c.chosen; });
}

const ScheduleCandidate& Find(const KernelReport& kernel,
                              const std::string& kind) {
  static const ScheduleCandidate kNone;
  const auto found =
      std::find_if(kernel.candidates.begin(), kernel.candidates.end(),
                   [&](const ScheduleCandidate& c) { return c.kind == kind; });
  EXPECT_NE(found, kernel.candidates.end()) << kind;
  return found == kernel.candidates.end() ? kNone : *found;
}

TEST(ScheduleReportTest, TheCpuSchedulesNothing) {
  EXPECT_THAT(ReportOf(kNorm, {"cpu", 0}).variants, IsEmpty());
}

TEST(ScheduleReportTest, RowsShowEachKeeperAndItsTime) {
  const ScheduleReport report = ReportOf(kNorm, kH100);
  EXPECT_EQ(report.device, "h100-sxm");
  ASSERT_EQ(report.variants.size(), 2u);
  EXPECT_TRUE(report.variants[0].requires_.cooperative);
  EXPECT_EQ(report.variants[1].requires_, Requirements{});

  const KernelReport& kernel = report.variants[0].kernels.at(0);
  EXPECT_THAT(kernel.computes, Contains(HasSubstr("group_norm")));
  const int64_t bytes = int64_t{112} * 64 * 512 * 512 * 4;
  EXPECT_EQ(kernel.read_bytes, bytes);
  EXPECT_EQ(kernel.written_bytes, bytes);
  EXPECT_EQ(CountChosen(kernel), 1);
  EXPECT_TRUE(Find(kernel, "whole grid").chosen);
  EXPECT_GT(*Find(kernel, "two kernels").microseconds,
            *Find(kernel, "whole grid").microseconds);
  EXPECT_FALSE(Find(kernel, "one block").fits);
  EXPECT_THAT(Find(kernel, "one block").reason, HasSubstr("shared memory"));
  EXPECT_EQ(kernel.microseconds, Find(kernel, "whole grid").microseconds);
}

TEST(ScheduleReportTest, RowsThatAreNotKeptSayWhyNot) {
  const ScheduleReport report = ReportOf(kNorm, kA100);
  ASSERT_EQ(report.variants.size(), 1u);
  EXPECT_EQ(report.variants[0].kernels.size(), 2u);
  const KernelReport& statistics = report.variants[0].kernels[0];
  EXPECT_TRUE(Find(statistics, "two kernels").chosen);
  EXPECT_THAT(Find(statistics, "whole grid").reason, HasSubstr("architecture"));
  EXPECT_THAT(report.variants[0].kernels[1].candidates, IsEmpty());
}

TEST(ScheduleReportTest, OverlappingLaunchesAreNamed) {
  const std::string early = "brings input while the kernel before ends";
  const ScheduleReport h100 = ReportOf(kResidualChain, kH100);
  const VariantReport& variant = h100.variants.at(0);
  EXPECT_THAT(KernelOf(variant, "kiln_conv_reduce").why, HasSubstr(early));
  EXPECT_THAT(KernelOf(variant, "kiln_conv_statistics").why,
              Not(HasSubstr("while the kernel before ends")));
  const ScheduleReport a100 = ReportOf(kResidualChain, kA100);
  EXPECT_THAT(KernelOf(a100.variants.at(0), "kiln_conv_reduce").why,
              Not(HasSubstr("while the kernel before ends")));
}

TEST(ScheduleReportTest, WhatIsReadAheadIsNamed) {
  const auto why = [](const std::string& ops) {
    const ScheduleReport report = ReportOf(
        "input x: f16[32,128,28,28]\nparam w: f16[128,128,3,3]\n"
        "c = conv2d(x, w, padding=1)\n" +
            ops + "\noutput y\n",
        kH100);
    return KernelOf(report.variants[0], "kiln_conv").why;
  };
  EXPECT_THAT(why("y = add(c, x)"), HasSubstr("other tensors is on its way"));
  EXPECT_THAT(why("y = relu(c)"), Not(HasSubstr("other tensors")));
}

TEST(ScheduleReportTest, ConvolutionsShowTheBestTileOfEachLayout) {
  for (const Target& target : {kH100, kA100}) {
    const ScheduleReport report = ReportOf(kResidualChain, target);
    const VariantReport& variant = report.variants.at(0);
    EXPECT_TRUE(KernelOf(variant, "kiln_pack_weights").prepares);
    EXPECT_FALSE(KernelOf(variant, "kiln_conv_reduce").candidates.empty());
    const KernelReport& kernel = KernelOf(variant, "kiln_conv_statistics");
    ASSERT_GE(kernel.candidates.size(), 2u);
    EXPECT_EQ(CountChosen(kernel), 1);
    EXPECT_TRUE(kernel.candidates[0].chosen);
    EXPECT_TRUE(kernel.candidates[0].cycles.has_value());
    for (size_t i = 1; i < kernel.candidates.size(); ++i) {
      const ScheduleCandidate& candidate = kernel.candidates[i];
      if (!candidate.fits) {
        EXPECT_THAT(candidate.reason, HasSubstr("registers"));
        continue;
      }
      EXPECT_GE(*candidate.cycles, *kernel.candidates[0].cycles);
      EXPECT_FALSE(candidate.detail.empty());
    }
  }
}

TEST(ScheduleReportTest, RewritesAreNamed) {
  EXPECT_THAT(
      ReportOf(kResidualChain, kH100).variants[0].rewrites,
      ElementsAre(HasSubstr("computed again in each of 2 kernels instead of "
                            "stored, for 216 multiply-adds"),
                  "by its power alone, for only errors beside 1 count: "
                  "v2 = tanh(v1)"));
  EXPECT_THAT(ReportOf(kPoolChain, kH100).variants[0].rewrites,
              ElementsAre(HasSubstr("pooling moved in front of the norm")));
  EXPECT_THAT(ReportOf(TransposedChain(), kH100).variants[0].rewrites,
              ElementsAre(HasSubstr("stored and read again, for 1728"),
                          HasSubstr("infinities as NaN")));
  EXPECT_THAT(ReportOf(kNorm, kH100).variants[0].rewrites, IsEmpty());
}

// Four bytes of each of 64 channels, for a round trip of 32.
TEST(ScheduleReportTest, AnInputTooLargeToBeReadAgainIsSaid) {
  EXPECT_THAT(ReportOf("input x: f32[16,64,512,512]\nparam w: f32[32,64,1,1]\n"
                       "c = conv2d(x, w)\ny = group_norm(c, num_groups=8)\n"
                       "output y\n",
                       kH100)
                  .variants[0]
                  .rewrites,
              ElementsAre(AllOf(HasSubstr("stored and read again, for reading "
                                          "the input once more takes as long"),
                                HasSubstr("any of 192 multiply-adds"))));
}

TEST(ScheduleReportTest, StatisticsMergedWhereTheyAreUsedAreSaid) {
  const VariantReport variant = ReportOf(kResidualChain, kH100).variants.at(0);
  EXPECT_THAT(variant.kernels[1].why,
              HasSubstr("merged by each block that needs them"));
}

// 12 bytes for each group of an image and each tile's share of it.
TEST(ScheduleReportTest, StatisticsLeftInTheWorkspaceAreWrittenAndRead) {
  const ScheduleReport report = ReportOf(R"(
input x: f32[16,8,64,64]
param w: f32[64,8,3,3]
c = conv2d(x, w)
n = group_norm(c, num_groups=16)
t = tanh(n)
h = hardswish(t)
r = add(h, c)
y = logsumexp(r, dim=1)
output y
)",
                                         kH100);
  const VariantReport& variant = report.variants.at(0);
  const KernelReport& statistics = KernelOf(variant, "kiln_conv_statistics");
  const KernelReport& reader = KernelOf(variant, "kiln_conv_reduce");
  EXPECT_GT(statistics.written_bytes, 0);
  EXPECT_EQ(statistics.written_bytes % (16 * 16 * 12), 0);
  EXPECT_LE(statistics.written_bytes, variant.workspace_bytes);
  EXPECT_EQ(reader.read_bytes,
            statistics.read_bytes + statistics.written_bytes);
  EXPECT_EQ(reader.written_bytes, 16 * 62 * 62 * 4);
}

TEST(ScheduleReportTest, AFinishedNormIsSaidWithItsLag) {
  const VariantReport variant =
      ReportOf(TransposedChain(), kH100).variants.at(0);
  ASSERT_EQ(variant.kernels.size(), 2u);
  EXPECT_THAT(variant.kernels[1].why,
              HasSubstr("some warps of each block apply the rest to what was "
                        "computed"));
}

TEST(ScheduleReportTest, DeadWorkIsNamedOnceForEachCall) {
  EXPECT_THAT(
      ReportOf("input x: f32[4096]\nt = tanh(x)\nh = hardswish(t)\n"
               "y = clamp(h, min=-1.0, max=1.0)\noutput y\n",
               kH100)
          .variants[0]
          .rewrites,
      ElementsAre("without clamps, by one multiply-add for (x + 3) / 6, as "
                  "its operand is in [-1, 1]: v1 = hardswish(v0)",
                  AllOf(HasSubstr("dropped, as its operand "
                                  "is in [-0.375"),
                        HasSubstr("v2 = clamp(v1"))));
}

// Before sm_80 no kernel pools beside statistics.
TEST(ScheduleReportTest, ARewriteThatIsNotAppliedIsNamed) {
  EXPECT_THAT(ReportOf(kPoolChain, {"sm_75", 40}).variants[0].rewrites,
              ElementsAre(HasSubstr("could be moved in front of the norm")));
}

TEST(ScheduleReportTest, APoolingThatIsFasterBehindTheNormIsNamed) {
  EXPECT_THAT(ReportOf(R"(
input x: f16[8,128,64,64]
param w: f16[256,128,3,3]
c = conv2d(x, w, padding=1)
n = group_norm(c, num_groups=16)
y = max_pool2d(n, kernel_size=2, stride=1)
output y
)",
                       kH100)
                  .variants[0]
                  .rewrites,
              Contains(HasSubstr("behind it, it takes less time")));
}

TEST(ScheduleReportTest, WithoutAKnownDeviceThereAreCyclesOnly) {
  const ScheduleReport report = ReportOf(kResidualChain, {"sm_80", 100});
  EXPECT_EQ(report.device, "");
  EXPECT_EQ(report.clock_mhz, 0);
  const KernelReport& kernel =
      KernelOf(report.variants[0], "kiln_conv_statistics");
  ASSERT_FALSE(kernel.candidates.empty());
  EXPECT_TRUE(kernel.candidates[0].cycles.has_value());
  EXPECT_FALSE(kernel.candidates[0].microseconds.has_value());
  EXPECT_FALSE(kernel.microseconds.has_value());
}

TEST(ScheduleReportTest, StreamingKernelsTakeAsLongAsTheirBytes) {
  const ScheduleReport report = ReportOf(R"(
input x: f16[4096,4096]
input b: f32[4096]
y = add(x, b)
output y: f16
)",
                                         kH100);
  const KernelReport& kernel = report.variants.at(0).kernels.at(0);
  EXPECT_EQ(kernel.read_bytes, 4096 * 4096 * 2 + 4096 * 4);
  EXPECT_EQ(kernel.written_bytes, 4096 * 4096 * 2);
  EXPECT_NEAR(*kernel.microseconds, 67.1e6 / 3015e3, 0.1);
}

TEST(ScheduleReportTest, RowsOfAWarpAndRowsSideBySideAreNamed) {
  const auto first = [](const std::string& text) {
    return ReportOf(text, kH100).variants.at(0).kernels.at(0);
  };
  const KernelReport warp = first(
      "input x: f32[65536,64]\ny = group_norm(x, num_groups=1)\noutput y\n");
  EXPECT_TRUE(Find(warp, "one warp").chosen);
  EXPECT_THAT(warp.why, HasSubstr("registers"));
  EXPECT_GT(*warp.microseconds, 5);
  const KernelReport columns = first(
      "input x: f32[16,768,32,32]\nm = mean(x, dim=1, keepdim=true)\n"
      "y = sub(x, m)\noutput y\n");
  EXPECT_TRUE(Find(columns, "columns of a block").chosen);
}

// Tiles are those of the plan's convolution, also where the chosen one has its
// groups joined, or phases of its result as channels.
TEST(ScheduleReportTest, CandidatesAreTheSameWhicheverIsChosen) {
  const char* const kJoined =
      "input x: f16[32,128,56,56]\nparam w: f16[128,4,3,3]\n"
      "y = conv2d(x, w, padding=1, groups=32)\noutput y\n";
  const char* const kPhases =
      "input x: f16[16,256,1,1024]\nparam w: f16[256,128,1,16]\n"
      "c = conv_transpose2d(x, w, stride=[1, 8], padding=[0, 4])\n"
      "y = relu(c)\noutput y\n";
  for (const char* text : {kJoined, kPhases}) {
    const CanonicalPlan plan = *Canonicalize(*ParsePlanText(text));
    const auto candidates = [&](int rank) {
      return KernelOf(
                 ReportSchedules(plan, kH100, {.conv = rank}).variants.at(0),
                 "kiln_conv")
          .candidates;
    };
    const std::vector<ScheduleCandidate> first = candidates(0);
    for (const int rank : {1, 5}) {
      const std::vector<ScheduleCandidate> others = candidates(rank);
      ASSERT_EQ(others.size(), first.size()) << text << rank;
      EXPECT_TRUE(others.at(rank).chosen) << text << rank;
      for (size_t i = 0; i < first.size(); ++i) {
        EXPECT_EQ(others[i].kind, first[i].kind) << text << rank;
        EXPECT_EQ(others[i].detail, first[i].detail) << text << rank;
      }
    }
  }
}

// Every kernel of every plan has its report, and where there was a choice the
// one that was made is among the candidates.
TEST(ScheduleReportTest, AnyPlanHasAReport) {
  PlanGenerator generator(13);
  for (int i = 0; i < 200; ++i) {
    const CanonicalPlan plan = *Canonicalize(generator.Next());
    SCOPED_TRACE(ToText(plan.plan));
    for (const Target& target : {kH100, kA100, Target{"sm_75", 40}}) {
      const std::vector<Schedule> schedules = MakeSchedules(plan, target);
      const ScheduleReport report = ReportSchedules(plan, target);
      ASSERT_EQ(report.variants.size(), schedules.size());
      for (size_t v = 0; v < schedules.size(); ++v) {
        const VariantReport& variant = report.variants[v];
        ASSERT_EQ(variant.kernels.size(), schedules[v].kernels.size());
        for (const KernelReport& kernel : variant.kernels) {
          EXPECT_FALSE(kernel.symbol.empty());
          EXPECT_FALSE(kernel.why.empty());
          EXPECT_EQ(CountChosen(kernel), kernel.candidates.empty() ? 0 : 1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace kiln
