// Random convolutions against the reference, without a GPU. Prevents what named
// plans do not think of: padding beyond the filter, few channels, strides that
// leave columns over, small images side by side, poolings behind ops that add
// channels or images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "fmt/format.h"
#include "jit/artifact/target.h"
#include "jit/compile/conv_fusion.h"
#include "jit/plan/plan_text.h"
#include "tests/jit/compile/compile_testing.h"
#include "tests/jit/plan/plan_generator.h"
#include "tests/ptx/comparison.h"
#include "tests/ptx/random_conv_plans.h"

namespace kiln::ptx {
namespace {

constexpr uint64_t kPlans = 60;

// How the plan of a seed is run.
struct RandomRun {
  std::string text;
  std::string target;
  PlanRunOptions options;
  InputOptions inputs;
};

// A single multiprocessor has the tensor cores of warpgroups to spare, so that
// few channels get them, too.
RandomRun RunOf(uint64_t seed) {
  TestRandom random(~seed);
  RandomRun run;
  run.text = RandomConvPlan(seed);
  run.target = random.Pick(
      {"sm_90a/1", "sm_90a/2", "sm_90a/1", "sm_90a/132", "sm_80/108"});
  run.options.tuning.conv = random.Pick({0, 0, 1, 2});
  run.options.off_grid = random.Pick({0, 0, 0, 0, 1, 2, 4});
  run.options.schedule_seed = random.OneIn(3) ? random.Int(1, 99) : 0;
  run.inputs.has_specials = random.OneIn(4);
  run.options.tuning.images = random.Pick({0, 1});
  return run;
}

class PtxRandomPlansTest : public testing::TestWithParam<uint64_t> {};

TEST_P(PtxRandomPlansTest, AgreesWithTheReference) {
  const RandomRun run = RunOf(GetParam());
  SCOPED_TRACE(fmt::format("{} conv{}\n{}", run.target, run.options.tuning.conv,
                           run.text));
  const absl::StatusOr<PlanKernels> kernels =
      CompileToPtx(run.text, run.target, TestToolchain(), run.options);
  ASSERT_TRUE(kernels.ok()) << DescribeFailure(kernels.status());
  const absl::StatusOr<ReferenceRun> reference =
      RunReference(kernels->canonical, run.inputs);
  ASSERT_TRUE(reference.ok()) << reference.status();
  const absl::StatusOr<Comparison> result =
      CompareWithReference(*kernels, *reference, run.options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_LE(result->norm_error, ToleranceOf(kernels->canonical));
  EXPECT_EQ(result->num_wrong, 0) << result->first_wrong;
}

std::string NameOf(const testing::TestParamInfo<uint64_t>& info) {
  return fmt::format("seed_{}", info.param);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PtxRandomPlansTest,
                         testing::Range(uint64_t{1}, kPlans + 1), NameOf);

// What multiplies, and what follows.
void AddKinds(const Schedule& schedule, const Kernel& kernel,
              std::set<std::string>* kinds) {
  const KernelGroup& group = kernel.group;
  if (!kernel.conv.has_value() || !kernel.computes()) return;
  const ConvGeometry& g = *kernel.conv;
  kinds->insert(!g.has_groups()  ? "warps"
                : g.channel_rows ? "rows of channels"
                                 : "rows of pixels");
  if (g.octet_columns > 1) kinds->insert("columns that share units");
  if (group.early_pooling >= 0) kinds->insert("pooling in front of a norm");
  if (group.tail < 0) return;
  const Node& tail = schedule.lowered.nodes[group.tail];
  const bool has_states = ChannelsOfState(tail, group.domain) > 0;
  kinds->insert(tail.kind == NodeKind::kPool2d  ? "pooling"
                : tail.op == OpKind::kGroupNorm ? "statistics"
                : has_states                    ? "images reduced"
                                                : "channels reduced");
}

// Plans that all took the same kernels would prevent little.
TEST(PtxRandomKindsTest, SeedsReachAllKindsOfKernels) {
  std::set<std::string> kinds;
  for (uint64_t seed = 1; seed <= kPlans; ++seed) {
    const RandomRun run = RunOf(seed);
    const absl::StatusOr<Target> target = ParseTarget(run.target);
    ASSERT_TRUE(target.ok()) << target.status();
    const Schedule schedule =
        MakeSchedules(*Canonicalize(*ParsePlanText(run.text)), *target,
                      run.options.room, run.options.tuning)
            .front();
    for (const Kernel& kernel : schedule.kernels) {
      AddKinds(schedule, kernel, &kinds);
    }
  }
  EXPECT_THAT(kinds,
              testing::ElementsAre(
                  "channels reduced", "columns that share units",
                  "images reduced", "pooling", "pooling in front of a norm",
                  "rows of channels", "rows of pixels", "statistics", "warps"));
}

}  // namespace
}  // namespace kiln::ptx
