// Generated kernels' PTX against the reference, without a GPU: what only runs
// on sm_90a or sm_80, which host_execution_test cannot build. Prevents wrong
// fragments, descriptors, pipelines of stages, barriers and exchanges between
// blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "tests/jit/compile/compile_testing.h"
#include "tests/ptx/comparison.h"
#include "tests/ptx/template_plans.h"

namespace kiln::ptx {
namespace {

// Of the norm of the difference. TF32 has 11 significant bits; results in 16
// bits are rounded, and what is multiplied is rounded to the type before.
double Tolerance(const PlanKernels& kernels) {
  double tolerance = kernels.canonical.plan.grade == Grade::kFp32 ? 2e-6 : 3e-3;
  for (const PlanOutput& output : kernels.canonical.plan.outputs) {
    if (output.dtype == DataType::kF16) tolerance = std::max(tolerance, 1e-3);
    if (output.dtype == DataType::kBF16) tolerance = std::max(tolerance, 4e-3);
  }
  return tolerance;
}

PlanKernels Compile(const TemplatePlan& plan, const std::string& grade,
                    size_t variant = 0) {
  PlanRunOptions options;
  options.variant = variant;
  absl::StatusOr<PlanKernels> kernels =
      CompileToPtx(grade + plan.text, plan.target, TestToolchain(), options);
  if (!kernels.ok()) {
    ADD_FAILURE() << plan.text << DescribeFailure(kernels.status());
    return {};
  }
  return *std::move(kernels);
}

void Check(const PlanKernels& kernels, const InputOptions& inputs,
           uint64_t schedule_seed) {
  PlanRunOptions options;
  options.schedule_seed = schedule_seed;
  const absl::StatusOr<Comparison> result =
      CompareWithReference(kernels, inputs, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_LE(result->norm_error, Tolerance(kernels));
  EXPECT_EQ(result->num_wrong, 0) << result->first_wrong;
  EXPECT_EQ(result->num_special > 0, inputs.has_specials);
}

class PtxExecutionTest : public testing::TestWithParam<TemplatePlan> {};

std::vector<std::string> GradesOf(const TemplatePlan& plan) {
  if (!plan.has_products) return {""};
  return {"", "grade tf32\n"};
}

// Also with an infinity and a NaN among the inputs, where warps are interrupted
// at random.
TEST_P(PtxExecutionTest, AgreesWithTheReference) {
  const TemplatePlan& plan = GetParam();
  for (const std::string& grade : GradesOf(plan)) {
    SCOPED_TRACE(plan.target + "\n" + grade + plan.text);
    const PlanKernels kernels = Compile(plan, grade);
    if (kernels.programs.empty()) continue;
    EXPECT_TRUE(std::find(kernels.files.begin(), kernels.files.end(),
                          plan.source_file) != kernels.files.end())
        << "no kernel is of " << plan.source_file;
    InputOptions inputs;
    inputs.row_factors = plan.row_factors;
    inputs.image_factors = plan.image_factors;
    Check(kernels, inputs, 0);
    inputs.has_specials = true;
    Check(kernels, inputs, 7);
  }
}

std::string NameOf(const testing::TestParamInfo<TemplatePlan>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Templates, PtxExecutionTest,
                         testing::ValuesIn(TemplatePlans()), NameOf);

const TemplatePlan& PlanNamed(const std::string& name) {
  static const std::vector<TemplatePlan>& plans =
      *new std::vector<TemplatePlan>(TemplatePlans());
  return *std::find_if(
      plans.begin(), plans.end(),
      [&](const TemplatePlan& plan) { return plan.name == name; });
}

// Blocks that compute also finish what earlier ones have left.
TEST(PtxSchedulesTest, SomeBlocksFinishWhatOthersLeave) {
  const PlanKernels kernels = Compile(PlanNamed("conv_finish"), "");
  EXPECT_TRUE(std::any_of(
      kernels.schedule.kernels.begin(), kernels.schedule.kernels.end(),
      [](const Kernel& kernel) { return kernel.progress && kernel.lag > 0; }));
}

// The schedule that asks nothing of a device.
TEST(PtxSchedulesTest, TeamsInTurnsAgreeWithTheReference) {
  const PlanKernels kernels = Compile(PlanNamed("rows_team"), "", 1);
  ASSERT_FALSE(kernels.programs.empty());
  EXPECT_GT(kernels.launch.size(), 1u);
  Check(kernels, {}, 0);
}

}  // namespace
}  // namespace kiln::ptx
