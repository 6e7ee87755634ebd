// Generated kernels against the reference, without a GPU. Prevents wrong
// indices, broadcasts, fusions and workspace layouts.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/jit/compile/host_cases.h"
#include "tests/jit/compile/host_kernels.h"
#include "tests/jit/compile/host_plans.h"

namespace kiln {
namespace {

using MakeSchedule = Schedule (*)(const CanonicalPlan&);

Schedule Plain(const CanonicalPlan& plan) {
  return MakeSchedules(plan, {"sm_90a", 132}, Room::kPlain).front();
}

// For a target without clusters and bulk copies, and without tensor cores that
// take convolutions, which no host has.
Schedule Fast(const CanonicalPlan& plan) {
  return MakeSchedules(plan, {"sm_75", 108}).front();
}

bool KeepsRows(const HostCase& test) {
  const Schedule schedule = Fast(test.canonical);
  return std::any_of(
      schedule.kernels.begin(), schedule.kernels.end(),
      [](const Kernel& kernel) { return kernel.rows.has_value(); });
}

bool HasTiles(const HostCase& test) {
  const Schedule schedule = Fast(test.canonical);
  return std::any_of(
      schedule.kernels.begin(), schedule.kernels.end(),
      [](const Kernel& kernel) { return kernel.depthwise.has_value(); });
}

std::vector<HostCase> Those(bool (*has)(const HostCase&),
                            std::vector<HostCase> cases) {
  std::erase_if(cases, [&](const HostCase& test) { return !has(test); });
  return cases;
}

void CheckCases(const std::vector<HostCase>& cases, double factor,
                double max_wrong_share, const std::vector<int>& specials,
                MakeSchedule make_schedule = Plain) {
  std::vector<Schedule> schedules;
  schedules.reserve(cases.size());
  for (const HostCase& test : cases) {
    schedules.push_back(make_schedule(test.canonical));
  }
  const HostKernels kernels(std::move(schedules));
  for (size_t i = 0; i < cases.size(); ++i) {
    CheckCase(cases[i], factor, max_wrong_share, specials,
              [&](std::span<void* const> slots) { kernels.Run(i, slots); });
  }
}

TEST(HostExecutionTest, SmallPlansAgreeWithTheReference) {
  const std::vector<HostCase> cases = SmallCases();
  ASSERT_GT(cases.size(), 100u);
  CheckCases(cases, 1.0, 0.0, {0, 5});
}

// Prevents wrong vectors: widths by type, operands that run along w or are
// shared, rows that vectors cross, tails, and tensors that are not aligned.
TEST(HostExecutionTest, LargePlansTakeVectors) {
  CheckCases(CasesOf(kLargePlans), 1.0, 0.0, {0, 5});
}

// Random chains may amplify an error without bound at single elements, where
// a sum cancels or near a pole; wrong indices or a wrong order of kernels
// spoil nearly all.
TEST(HostExecutionTest, RandomPlansAgreeWithTheReference) {
  constexpr uint64_t kSeed = 20261121;
  CheckCases(RandomCases(kSeed, 100), 50.0, 0.1, {0});
}

// Normalisations whose rows stay on chip: those of the shape sets, and random
// chains around them.
TEST(HostExecutionTest, RowsOnChipAgreeWithTheReference) {
  const std::vector<HostCase> cases = Those(KeepsRows, SmallCases());
  ASSERT_GT(cases.size(), 20u);
  CheckCases(cases, 1.0, 0.0, {0, 5}, Fast);
}

// Prevents wrong rows and columns of depthwise convolutions.
TEST(HostExecutionTest, TilesAgreeWithTheReference) {
  for (const std::vector<HostCase>& cases :
       {Those(HasTiles, SmallCases()), Those(HasTiles, CasesOf(kLargePlans))}) {
    ASSERT_FALSE(cases.empty());
    CheckCases(cases, 1.0, 0.0, {0, 5}, Fast);
  }
}

// Prevents wrong places of what is kept, and wrong ends of rows, strips and
// segments. One special value in 997: some rows have none, some one.
TEST(HostExecutionTest, LargeRowsOnChipAgreeWithTheReference) {
  const std::vector<HostCase> cases = CasesOf(kRowPlans);
  for (const HostCase& test : cases) {
    const Schedule schedule = Fast(test.canonical);
    EXPECT_EQ(schedule.kernels.size(), 1u) << test.named.text;
    EXPECT_TRUE(schedule.kernels[0].rows.has_value()) << test.named.text;
  }
  CheckCases(cases, 1.0, 0.0, {0, 997, 5}, Fast);
}

// The schedule that asks nothing of a device, with rows in the hands of a team.
Schedule InTurns(const CanonicalPlan& plan) {
  for (int rank = 0; rank <= kMaxTuningRank; ++rank) {
    std::vector<Schedule> schedules =
        MakeSchedules(plan, {"sm_90a", 4}, Room::kTight, {0, rank});
    if (schedules.size() == 2) return std::move(schedules[1]);
  }
  ADD_FAILURE() << "no team takes the plan";
  return Plain(plan);
}

// Prevents that blocks wait for each other, which need not run at the same
// time, and wrong places in the ring.
TEST(HostExecutionTest, TeamsInTurnsAgreeWithTheReference) {
  CheckCases(CasesOf(kTeamPlans), 1.0, 0.0, {0, 30'011}, InTurns);
}

TEST(HostExecutionTest, RandomPlansWithRowsOnChipAgreeWithTheReference) {
  constexpr uint64_t kSeed = 20261122;
  CheckCases(RandomCases(kSeed, 40, KeepsRows), 50.0, 0.1, {0}, Fast);
}

}  // namespace
}  // namespace kiln
