#include "jit/compile/tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jit/compile/schedule.h"
#include "jit/compile/schedule_report.h"
#include "jit/plan/plan_text.h"
#include "tests/jit/compile/chain_plans.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kConvolution[] = R"(
input x: f32[8,32,56,56]
param w: f32[48,32,3,3]
c = conv2d(x, w, padding=1)
y = silu(c)
output y
)";

// The models' choice has statistics from correlations.
constexpr char kCorrelated[] = R"(
grade tf32
input x: f32[128,8,128,128]
param w: f32[64,8,3,3]
c = conv2d(x, w)
n = group_norm(c, num_groups=8)
t = tanh(n)
y = logsumexp(t, dim=1)
output y
)";

// And here it has blocks that hold images.
std::string Held() { return "grade tf32\n" + TransposedChain(); }

CanonicalPlan PlanOf(const std::string& text) {
  return *Canonicalize(*ParsePlanText(text));
}

// The first kernel for which there are candidates.
KernelReport Considered(const ScheduleReport& report) {
  for (const KernelReport& kernel : report.variants[0].kernels) {
    if (!kernel.candidates.empty()) return kernel;
  }
  ADD_FAILURE() << "there is nothing to choose";
  return {};
}

std::string ChosenOf(const ScheduleReport& report) {
  for (const ScheduleCandidate& candidate : Considered(report).candidates) {
    if (candidate.chosen) return candidate.kind;
  }
  return "";
}

TEST(TuningTest, TextAndValueAreTheSame) {
  for (const char* text :
       {"auto", "conv1", "conv15", "rows2", "conv3+rows1", "images1", "images2",
        "rows2+images1", "conv1+rows2+images1", "correlations1",
        "conv1+rows2+images1+correlations1", "eager"}) {
    const absl::StatusOr<Tuning> tuning = ParseTuning(text);
    ASSERT_TRUE(tuning.ok()) << text;
    EXPECT_EQ(ToString(*tuning), text);
  }
}

// Prevents two keys for one schedule, and text of clients in keys.
TEST(TuningTest, AnyOtherTextIsRefused) {
  for (const char* text : {"",
                           "conv",
                           "conv0",
                           "conv01",
                           "conv16",
                           "conv-1",
                           "conv1+",
                           "+rows1",
                           "conv1rows1",
                           "rows1+conv1",
                           "rows1 ",
                           "auto1",
                           "conv1+conv2",
                           "conv99999999999999",
                           "images3",
                           "images1+rows1",
                           "images1+",
                           "correlations2",
                           "correlations1+images1",
                           "plain",
                           "eager1",
                           "eager+rows1"}) {
    const absl::Status status = ParseTuning(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("variant"));
  }
}

TEST(TuningTest, AlternativesAreTheCandidatesThatFit) {
  const std::vector<Tuning> rows = Alternatives(PlanOf(kNorm), kH100, 8);
  EXPECT_THAT(rows, ElementsAre(Tuning{}, Tuning{0, 1}));
  const std::vector<Tuning> conv = Alternatives(PlanOf(kConvolution), kH100, 8);
  EXPECT_GT(conv.size(), 2u);
  EXPECT_EQ(conv[0], Tuning{});
  EXPECT_THAT(conv, Contains(Tuning{1, 0}));
  EXPECT_EQ(Alternatives(PlanOf(kConvolution), kH100, 2).size(), 2u);
  EXPECT_EQ(Alternatives(PlanOf(kNorm), {"cpu", 0}, 8).size(), 1u);
}

// Prevents that the last of six layouts is left out behind what is no tile.
TEST(TuningTest, LayoutsAreCountedFromTheFastestTiles) {
  EXPECT_THAT(Alternatives(PlanOf(kConvolution), kH100, 100),
              AllOf(Contains(Tuning{5, 0}), Not(Contains(Tuning{6, 0}))));
  for (const std::string& text : {std::string(kCorrelated), Held()}) {
    const CanonicalPlan plan = PlanOf(text);
    EXPECT_EQ(MakeSchedules(plan, kH100).front().RanksBeforeTiles(), 1);
    EXPECT_THAT(Alternatives(plan, kH100, 100),
                AllOf(Contains(Tuning{6, 0}), Not(Contains(Tuning{7, 0}))));
    EXPECT_THAT(Considered(ReportSchedules(plan, kH100, {6, 0})).why,
                HasSubstr("conv6 asks for tile number 6 instead of the first"));
  }
}

// Prevents that a variant is said to ask for what the models chose, or not to
// ask for what it does.
TEST(TuningTest, WhatAVariantAsksForInsteadOfTilesIsSaid) {
  const auto why = [](const std::string& text, const Tuning& tuning) {
    return Considered(ReportSchedules(PlanOf(text), kH100, tuning)).why;
  };
  EXPECT_THAT(why(Held(), {.conv = 1}),
              StartsWith("the variant conv1 asks for blocks that hold no "
                         "images, and no correlations;"));
  EXPECT_THAT(why(Held(), {.conv = 1, .correlations = 1}),
              StartsWith("the variant conv1+correlations1 asks for blocks that "
                         "hold no images;"));
  EXPECT_THAT(why(kCorrelated, {.conv = 1}),
              StartsWith("the variant conv1 asks for no correlations;"));
}

TEST(TuningTest, EachAlternativeIsAScheduleOfItsOwn) {
  for (const char* text : {kNorm, kConvolution, kCorrelated}) {
    const CanonicalPlan plan = PlanOf(text);
    std::vector<std::string> seen;
    for (const Tuning& tuning : Alternatives(plan, kH100, 8)) {
      const ScheduleReport report = ReportSchedules(plan, kH100, tuning);
      const std::string chosen = ChosenOf(report);
      EXPECT_NE(chosen, "");
      EXPECT_THAT(seen, Not(Contains(chosen)));
      seen.push_back(chosen);
    }
  }
}

TEST(TuningTest, RanksCountInTheOrderOfTheReport) {
  const CanonicalPlan plan = PlanOf(kConvolution);
  const ScheduleReport first = ReportSchedules(plan, kH100);
  const ScheduleReport second = ReportSchedules(plan, kH100, {1, 0});
  EXPECT_TRUE(Considered(first).candidates.at(0).chosen);
  EXPECT_TRUE(Considered(second).candidates.at(1).chosen);
  EXPECT_THAT(Considered(second).why, HasSubstr("conv1"));
}

TEST(TuningTest, RowsThatLoseToTwoKernelsCanBeTriedToo) {
  const CanonicalPlan plan = PlanOf(kNorm);
  EXPECT_EQ(MakeSchedules(plan, kH100)[0].kernels.size(), 1u);
  EXPECT_EQ(MakeSchedules(plan, kH100, Room::kTight, {0, 1})[0].kernels.size(),
            2u);
}

TEST(TuningTest, BeyondTheLastMeansTheLast) {
  const CanonicalPlan plan = PlanOf(kNorm);
  const auto kernels = [&plan](int rank) {
    return MakeSchedules(plan, kH100, Room::kTight, {0, rank})[0]
        .kernels.size();
  };
  EXPECT_EQ(kernels(0), 1u);
  EXPECT_EQ(kernels(1), 2u);
  EXPECT_EQ(kernels(15), 2u);
}

// Prevents that the last is taken for the one that was asked for.
TEST(TuningTest, BeyondTheLastIsSaid) {
  const auto why = [](const char* text, const Tuning& tuning) {
    return Considered(ReportSchedules(PlanOf(text), kH100, tuning)).why;
  };
  EXPECT_THAT(why(kNorm, {0, 1}), HasSubstr("number 2 instead of the first"));
  EXPECT_THAT(why(kNorm, {0, 15}),
              HasSubstr("the variant rows15 asks for number 16, which there is "
                        "not: this is the last, number 2"));
  EXPECT_THAT(why(kConvolution, {15, 0}),
              HasSubstr("asks for tile number 16, which there is not"));
}

TEST(TuningTest, WhatIsChosenIsShownHoweverSlow) {
  EXPECT_NE(ChosenOf(ReportSchedules(PlanOf(kConvolution), kH100, {15, 0})),
            "");
}

}  // namespace
}  // namespace kiln
