// Lines of 16-bit numbers that warps turn (conv_turned_lines.cuh): statistics,
// strides and chunks that are not full, channels as rows, a filter of one tap.
// Prevents matrices of the wrong rows, pixels in places of others, and places
// that are filled before they have been read.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/jit/compile/compile_testing.h"
#include "tests/ptx/comparison.h"
#include "tests/ptx/conv_plan_text.h"

namespace kiln::ptx {
namespace {

struct TurnedPlan {
  std::string name;
  std::string text;
  bool has_channel_rows;
};

std::vector<TurnedPlan> TurnedPlans() {
  return {
      {"pixels",
       Conv("4,96,64,64", "128,96,3,3", "padding=1",
            "y = group_norm(c, num_groups=32)", "f16"),
       false},
      {"strides",
       Conv("2,72,64,64", "136,72,3,3", "stride=2, padding=1", "y = relu(c)",
            "f16"),
       false},
      {"channels",
       Conv("2,64,48,96", "64,64,3,3", "padding=1",
            "m = mul(c, 0.1)\ny = gelu(m)", "bf16"),
       true},
      {"softmax",
       Conv("1,128,32,128", "21,128,1,1", "", "y = softmax(c, dim=1)", "f16"),
       false},
  };
}

PlanKernels Compile(const TurnedPlan& plan, const PlanRunOptions& options) {
  absl::StatusOr<PlanKernels> kernels =
      CompileToPtx(plan.text, "sm_90a/8", TestToolchain(), options);
  if (!kernels.ok()) {
    ADD_FAILURE() << plan.text << DescribeFailure(kernels.status());
    return {};
  }
  return *std::move(kernels);
}

const ConvGeometry* GeometryOf(const PlanKernels& kernels) {
  for (const Kernel& kernel : kernels.schedule.kernels) {
    if (kernel.conv && !kernel.packs) return &*kernel.conv;
  }
  return nullptr;
}

void Check(const TurnedPlan& plan, const PlanRunOptions& options) {
  SCOPED_TRACE(plan.name);
  const PlanKernels kernels = Compile(plan, options);
  ASSERT_FALSE(kernels.programs.empty());
  const ConvGeometry* const geometry = GeometryOf(kernels);
  ASSERT_NE(geometry, nullptr);
  EXPECT_TRUE(geometry->turns_lines);
  EXPECT_EQ(geometry->channel_rows, plan.has_channel_rows);
  for (const bool has_specials : {false, true}) {
    InputOptions inputs;
    inputs.has_specials = has_specials;
    const absl::StatusOr<Comparison> result =
        CompareWithReference(kernels, inputs, options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_LE(result->norm_error, ToleranceOf(kernels.canonical));
    EXPECT_EQ(result->num_wrong, 0) << result->first_wrong;
  }
}

TEST(PtxTurnedLinesTest, AgreeWithTheReference) {
  for (const TurnedPlan& plan : TurnedPlans()) Check(plan, {});
}

// Where copies and warps take turns at random.
TEST(PtxTurnedLinesTest, AgreeInAnyOrder) {
  PlanRunOptions options;
  options.schedule_seed = 11;
  for (const TurnedPlan& plan : TurnedPlans()) Check(plan, options);
}

// Eight neighbours are then no access.
TEST(PtxTurnedLinesTest, AgreeWhereTensorsBeginBetweenAccesses) {
  PlanRunOptions options;
  options.off_grid = true;
  for (const TurnedPlan& plan : TurnedPlans()) Check(plan, options);
}

}  // namespace
}  // namespace kiln::ptx
