// Generated kernels' PTX against the reference, without a GPU: what only runs
// on sm_90a or sm_80, which host_execution_test cannot build. Prevents wrong
// fragments, descriptors, pipelines of stages, barriers and exchanges between
// blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "tests/full_matrix.h"
#include "tests/jit/compile/compile_testing.h"
#include "tests/jit/compile/fastest_schedule.h"
#include "tests/ptx/joined_plans.h"
#include "tests/ptx/plan_testing.h"
#include "tests/ptx/template_plans.h"

namespace kiln::ptx {
namespace {

// `grade` is empty: that of the text.
std::string TextOf(const TemplatePlan& plan, const std::string& grade) {
  return grade.empty() ? plan.text : "grade " + grade + "\n" + plan.text;
}

PlanKernels Compile(const TemplatePlan& plan, const std::string& grade,
                    PlanRunOptions options = {}) {
  if (options.tuning == Tuning{}) options.tuning = plan.tuning;
  return Compiled(TextOf(plan, grade), plan.target, options);
}

std::vector<std::string> GradesOf(const TemplatePlan& plan) {
  if (!plan.has_products) return {""};
  return {"fp32", "tf32"};
}

struct Case {
  TemplatePlan plan;
  std::vector<std::string> grades;
};

// Of all templates, those with products in one grade or both (full_matrix.h).
std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const TemplatePlan& plan : TemplatePlans()) {
    cases.push_back({plan, plan.has_products ? GradesInTurn(cases.size())
                                             : GradesOf(plan)});
  }
  return cases;
}

Schedule ScheduleOf(const TemplatePlan& plan, const std::string& grade) {
  return Fastest(TextOf(plan, grade), *ParseTarget(plan.target), plan.tuning);
}

class PtxExecutionTest : public testing::TestWithParam<Case> {};

// Also with an infinity and a NaN among the inputs, where warps are interrupted
// at random.
TEST_P(PtxExecutionTest, AgreesWithTheReference) {
  const auto& [plan, grades] = GetParam();
  for (const std::string& grade : grades) {
    SCOPED_TRACE(plan.target + " in " + grade + "\n" + plan.text);
    const PlanKernels kernels = Compile(plan, grade);
    if (kernels.programs.empty()) continue;
    EXPECT_TRUE(std::find(kernels.files.begin(), kernels.files.end(),
                          plan.source_file) != kernels.files.end())
        << "no kernel is of " << plan.source_file;
    InputOptions inputs;
    inputs.row_factors = plan.row_factors;
    inputs.channel_factors = plan.channel_factors;
    inputs.image_factors = plan.image_factors;
    ExpectAgreement(kernels, inputs);
    inputs.has_specials = true;
    PlanRunOptions interrupted;
    interrupted.schedule_seed = 7;
    ExpectAgreement(kernels, inputs, {interrupted});
  }
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  return info.param.plan.name;
}

INSTANTIATE_TEST_SUITE_P(Templates, PtxExecutionTest,
                         testing::ValuesIn(Cases()), NameOf);

const TemplatePlan& PlanNamed(const std::string& name) {
  static const std::vector<TemplatePlan>& plans =
      *new std::vector<TemplatePlan>(TemplatePlans());
  return *std::find_if(
      plans.begin(), plans.end(),
      [&](const TemplatePlan& plan) { return plan.name == name; });
}

// Blocks that compute also finish what earlier ones have left.
TEST(PtxSchedulesTest, SomeBlocksFinishWhatOthersLeave) {
  const Schedule schedule = ScheduleOf(PlanNamed("conv_finish"), "");
  EXPECT_TRUE(std::any_of(
      schedule.kernels.begin(), schedule.kernels.end(),
      [](const Kernel& kernel) { return kernel.progress && kernel.lag > 0; }));
}

// In each grade that operands have parts in.
TEST(PtxSchedulesTest, GroupsOfFewChannelsAreJoined) {
  for (const TemplatePlan& plan : JoinedPlans()) {
    for (const std::string& grade : GradesOf(plan)) {
      SCOPED_TRACE(plan.name + " " + grade);
      const Schedule schedule = ScheduleOf(plan, grade);
      EXPECT_TRUE(std::any_of(schedule.kernels.begin(), schedule.kernels.end(),
                              [](const Kernel& kernel) {
                                return kernel.conv &&
                                       kernel.conv->problem.joined > 1;
                              }));
    }
  }
}

TEST(PtxSchedulesTest, SomeTilesTakeRowsFromTheOneAbove) {
  for (const char* name :
       {"conv_carries", "conv_carries_planes", "conv_carries_chunks",
        "conv_carries_ahead", "conv_carries_few", "conv_carries_finish"}) {
    SCOPED_TRACE(name);
    bool carries = false;
    for (const char* grade : {"fp32", "tf32"}) {
      const Schedule schedule = ScheduleOf(PlanNamed(name), grade);
      for (const Kernel& kernel : schedule.kernels) {
        carries |= kernel.conv.has_value() && kernel.conv->carried_rows() > 0;
      }
    }
    EXPECT_TRUE(carries);
  }
}

// Prevents that warps that take turns with rows take an earlier chunk, which is
// on its way to the same place, for theirs: copies take as long as they like.
TEST(PtxSchedulesTest, WarpsThatTakeTurnsWaitForTheirOwnChunks) {
  PlanRunOptions options;
  options.tuning.rows = 2;
  const absl::StatusOr<PlanKernels> kernels = CompileToPtx(
      "input x: f32[96,2,32,64]\ninput z: f32[96,2,32,64]\nv = add(x, z)\n"
      "n = group_norm(v, num_groups=1)\ny = relu(n)\noutput y\n",
      "sm_90a/4", TestToolchain(), options);
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  const std::optional<RowGeometry>& rows = kernels->schedule.kernels[0].rows;
  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ(rows->keeper, RowKeeper::kTeam);
  EXPECT_EQ(rows->row_groups, 4);
  std::vector<PlanRunOptions> ways;
  for (options.schedule_seed = 1; options.schedule_seed <= 8;
       ++options.schedule_seed) {
    ways.push_back(options);
  }
  ExpectAgreement(*kernels, {}, ways);
}

// Whether in each grade some convolution of each plan whose name begins with
// `prefix` is as `is_wanted` asks. Those that are named for something do not
// lose it to another choice of tiles.
void ExpectOfPlansNamed(const std::string& prefix,
                        const std::function<bool(const Kernel&)>& is_wanted) {
  for (const TemplatePlan& plan : TemplatePlans()) {
    if (!plan.name.starts_with(prefix)) continue;
    for (const std::string& grade : GradesOf(plan)) {
      const Schedule schedule =
          Fastest(TextOf(plan, grade), *ParseTarget(plan.target));
      EXPECT_TRUE(std::any_of(schedule.kernels.begin(), schedule.kernels.end(),
                              [&](const Kernel& kernel) {
                                return kernel.conv.has_value() &&
                                       is_wanted(kernel);
                              }))
          << plan.name << " " << grade;
    }
  }
}

TEST(PtxSchedulesTest, SomeTilesHaveBothPhasesOfTheirColumns) {
  ExpectOfPlansNamed("transpose_merged",
                     [](const Kernel& k) { return k.conv->merges_phases(); });
}

TEST(PtxSchedulesTest, SomeTilesKeepWindowsOnTheirWayToMemory) {
  ExpectOfPlansNamed("conv_keeps_windows", [](const Kernel& k) {
    return k.group.early_pooling >= 0 && k.conv->channel_rows &&
           !k.conv->holds_images();
  });
}

// Neither is a block whole in a group, nor a group in a block.
bool CutsGroups(const Kernel& kernel) {
  const int64_t group = kernel.demands.group_channels;
  const int64_t block = kernel.conv->block_channels();
  return group > 0 && block % group != 0 && group % block != 0 &&
         kernel.conv->PartsOfState(group) > 1;
}

TEST(PtxSchedulesTest, SomeBlocksHavePartsOfGroups) {
  using Wanted = bool (*)(const Kernel&);
  for (const auto& [prefix, is_so] :
       std::vector<std::pair<std::string, Wanted>>{
           {"conv_holds_cut_groups",
            [](const Kernel& k) { return k.conv->holds_images(); }},
           {"conv_holds_windows_cut_groups",
            [](const Kernel& k) { return k.conv->holds_windows(); }},
           {"conv_cuts_groups_pixels",
            [](const Kernel& k) { return !k.conv->channel_rows; }},
           {"conv_cuts_groups_channels",
            [](const Kernel& k) {
              return k.conv->channel_rows && !k.conv->rows_of_eight();
            }},
           {"conv_cuts_groups_merged",
            [](const Kernel& k) { return k.leaves_states; }},
           {"conv_cuts_groups_finish",
            [](const Kernel& k) { return !k.group.finish.empty(); }},
           {"conv_cuts_groups_images",
            [](const Kernel& k) { return k.conv->images > 1; }},
       }) {
    ExpectOfPlansNamed(prefix, [&, is_so = is_so](const Kernel& kernel) {
      return CutsGroups(kernel) && is_so(kernel);
    });
  }
  for (const char* name :
       {"conv_holds_cut_groups_thrice", "conv_cuts_groups_channels_thrice"}) {
    ExpectOfPlansNamed(name, [](const Kernel& kernel) {
      return CutsGroups(kernel) &&
             kernel.conv->PartsOfState(kernel.demands.group_channels) == 3;
    });
  }
}

TEST(PtxSchedulesTest, SomeBlocksHaveSeveralImages) {
  ExpectOfPlansNamed("conv_small_images",
                     [](const Kernel& k) { return k.conv->images > 1; });
}

TEST(PtxSchedulesTest, SomeRowsArePartsOfSignals) {
  ExpectOfPlansNamed(
      "signal_", [](const Kernel& k) { return k.conv->problem.wraps_rows; });
}

TEST(PtxSchedulesTest, SomeTilesHaveRowsOfEight) {
  ExpectOfPlansNamed("conv_eights",
                     [](const Kernel& k) { return k.conv->rows_of_eight(); });
}

TEST(PtxSchedulesTest, SomeRowsOfTilesAreThoseOfProducts) {
  ExpectOfPlansNamed("conv_apart", [](const Kernel& k) {
    return !k.conv->channel_rows && k.conv->run_columns == 64;
  });
}

TEST(PtxSchedulesTest, SomeGroupsHoldTheirTurns) {
  ExpectOfPlansNamed("conv_turns_held", [](const Kernel& k) {
    return k.demands.all_channels_in_a_block && k.conv->groups() > 2;
  });
}

TEST(PtxSchedulesTest, DepthwiseTilesHaveMoreThanOneVector) {
  for (const TemplatePlan& plan : TemplatePlans()) {
    if (!plan.name.starts_with("depthwise_")) continue;
    const Schedule schedule = Fastest(plan.text, *ParseTarget(plan.target));
    ASSERT_EQ(schedule.kernels.size(), 1u) << plan.name;
    const DepthwiseTile& tile = *schedule.kernels[0].depthwise;
    EXPECT_GT(tile.rows * tile.columns, tile.vector) << plan.name;
    const bool is_long = plan.name == "depthwise_long_rows";
    EXPECT_EQ(tile.row_taps > 0, is_long) << plan.name;
    EXPECT_EQ(!tile.holds_filter, is_long || plan.name == "depthwise_by_rows")
        << plan.name;
    EXPECT_EQ(tile.walks, plan.name.starts_with("depthwise_walk")) << plan.name;
    EXPECT_TRUE(plan.name != "depthwise_walk_parts" || tile.rows < 61);
  }
}

// The schedule that asks nothing of a device.
TEST(PtxSchedulesTest, TeamsInTurnsAgreeWithTheReference) {
  PlanRunOptions options;
  options.variant = 1;
  const PlanKernels kernels = Compile(PlanNamed("rows_team"), "", options);
  ASSERT_FALSE(kernels.programs.empty());
  EXPECT_GT(kernels.launch.size(), 1u);
  ExpectAgreement(kernels, {});
}

// Blocks that hold images, resident or in turns, one after another.
TEST(PtxSchedulesTest, BlocksHoldImages) {
  for (const TemplatePlan& plan : TemplatePlans()) {
    if (!plan.name.starts_with("conv_holds")) continue;
    SCOPED_TRACE(plan.name);
    PlanRunOptions options;
    options.variant = 1;
    options.resident_blocks = 1;
    const PlanKernels kernels = Compile(plan, "", options);
    ASSERT_FALSE(kernels.programs.empty());
    const ConvGeometry& geometry = *kernels.schedule.kernels.back().conv;
    EXPECT_TRUE(geometry.holds_images());
    EXPECT_GT(geometry.rounds(), 1);
    EXPECT_EQ(kernels.launch.size(), 2u);
    InputOptions inputs;
    inputs.has_specials = true;
    ExpectAgreement(kernels, inputs, {options});
  }
}

// What the plans of that name are for.
TEST(PtxSchedulesTest, PixelsAreTakenAsTheyLie) {
  for (const char* name :
       {"conv_lines", "conv_lines_parts", "conv_lines_reshaped"}) {
    SCOPED_TRACE(name);
    const Schedule schedule = ScheduleOf(PlanNamed(name), "");
    const ConvGeometry& geometry = *schedule.kernels.back().conv;
    EXPECT_TRUE(geometry.takes_lines);
    EXPECT_EQ(geometry.parts() > 1, std::string(name) == "conv_lines_parts");
  }
}

TEST(PtxSchedulesTest, OpsReadAhead) {
  for (const char* name : {"conv_beside", "conv_beside_lines",
                           "conv_beside_f32", "conv_beside_phases"}) {
    SCOPED_TRACE(name);
    const Schedule schedule = ScheduleOf(PlanNamed(name), "");
    const ConvGeometry& geometry = *schedule.kernels.back().conv;
    EXPECT_TRUE(geometry.reads_beside);
    EXPECT_GT(geometry.tiles_per_block, 1);
    EXPECT_EQ(geometry.takes_lines, std::string(name) == "conv_beside_lines");
  }
}

// Kernels to which plans fall whose others do not fit in registers.
TEST(PtxSchedulesTest, LastAttemptsAgreeWithTheReference) {
  PlanRunOptions options;
  options.room = Room::kPlain;
  for (const char* name : {"conv_pool_4", "rows_block", "depthwise"}) {
    SCOPED_TRACE(name);
    const PlanKernels kernels = Compile(PlanNamed(name), "", options);
    ASSERT_FALSE(kernels.programs.empty());
    InputOptions inputs;
    inputs.has_specials = true;
    ExpectAgreement(kernels, inputs, {options});
  }
}

// Neighbours are accessed together only where they are aligned. Four numbers of
// 16 bits behind that, those that 8 bytes hold are.
TEST(PtxSchedulesTest, TensorsOffTheGridAgreeWithTheReference) {
  PlanRunOptions by_one, by_four;
  by_one.off_grid = 1;
  by_four.off_grid = 4;
  for (const char* name : {"conv_store",
                           "conv_residual",
                           "conv_f16_moments",
                           "conv_bf16_k1",
                           "conv_finish",
                           "conv_holds",
                           "conv_3_channels",
                           "conv_lines",
                           "conv_lines_reshaped",
                           "conv_beside",
                           "conv_beside_lines",
                           "conv_beside_f32",
                           "conv_beside_phases",
                           "transpose_merged_k3_s2",
                           "transpose_merged_pixel_rows",
                           "rows_block",
                           "pointwise",
                           "depthwise_tall",
                           "depthwise_pairs",
                           "depthwise_by_rows",
                           "depthwise_walk",
                           "depthwise_walk_parts",
                           "depthwise_walk_pairs",
                           "depthwise_walk_below"}) {
    SCOPED_TRACE(name);
    ExpectAgreement(Compile(PlanNamed(name), ""), {}, {by_one, by_four});
  }
}

// Of the last channels, which a block may not have, parameters are not read:
// here so many of each that threads do not share them.
TEST(PtxSchedulesTest, ChannelsThatAreNotThereHaveNoParameters) {
  std::string params = "param w: f32[62,32,3,3]\n";
  std::string ops = "v0 = conv2d(x, w)\n";
  for (int i = 0; i < 10; ++i) {
    params += fmt::format("param p{}: f32[62,1,1]\n", i);
    ops += fmt::format("r{0} = add(v{0}, p{0})\nv{1} = relu(r{0})\n", i, i + 1);
  }
  const TemplatePlan plan{
      "", "", "input x: f32[2,32,20,20]\n" + params + ops + "output v10\n"};
  for (const int conv : {0, 4, 5, 7}) {
    SCOPED_TRACE(conv);
    PlanRunOptions options;
    options.tuning.conv = conv;
    ExpectAgreement(Compile(plan, "", options), {});
  }
}

}  // namespace
}  // namespace kiln::ptx
