#include "client/plan_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jit/plan/plan_text.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;

TEST(PlanBuilderTest, WritesThePlanThatTheTextDescribes) {
  PlanBuilder b;
  const ValueId x = b.Input("x", DataType::kF32, {2, 8, 16, 16});
  const ValueId w = b.Param("w", DataType::kF32, {64, 8, 3, 3});
  const ValueId bias = b.Param("b", DataType::kF32, {64});
  const ValueId y = b.Name("y", b.Conv2d(x, w, bias, {.padding = {1, 1}}));
  const ValueId n = b.Name("n", b.GroupNorm(y, {.num_groups = 16}));
  const ValueId r = b.Name("r", b.Add(n, y));
  b.Output(b.Name("z", b.Mul(r, 2.0f)), DataType::kF16);
  const absl::StatusOr<Plan> built = b.Build();
  const absl::StatusOr<Plan> parsed = ParsePlanText(R"(
      input x: f32[2,8,16,16]
      param w: f32[64,8,3,3]
      param b: f32[64]
      y = conv2d(x, w, b, padding=1)
      n = group_norm(y, num_groups=16)
      r = add(n, y)
      z = mul(r, 2.0)
      output z: f16
  )");
  ASSERT_TRUE(built.ok()) << built.status().ToString();
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(ToText(*built), ToText(*parsed));
}

// Inputs come first in a plan's numbering, whenever they were declared.
TEST(PlanBuilderTest, InputsAndOpsMayAlternate) {
  PlanBuilder b;
  const ValueId x = b.Input("x", DataType::kF32, {4});
  const ValueId y = b.Name("y", b.Relu(x));
  const ValueId s = b.Param("s", DataType::kF32, {4});
  b.Output(b.Name("z", b.Sub(y, s)));
  const absl::StatusOr<Plan> plan = b.Build();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_THAT(ToText(*plan), HasSubstr("z = sub(y, s)"));
}

TEST(PlanBuilderTest, OutputTypeIsPromotedUnlessGiven) {
  PlanBuilder b;
  const ValueId x = b.Input("x", DataType::kBF16, {4});
  b.Output(b.Relu(x));
  b.Output(b.Relu(x), DataType::kF32);
  const absl::StatusOr<Plan> plan = b.Build();
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->outputs[0].dtype, DataType::kBF16);
  EXPECT_EQ(plan->outputs[1].dtype, DataType::kF32);
}

TEST(PlanBuilderTest, BuildRefusesWhatIsWrong) {
  PlanBuilder b;
  const ValueId x = b.Input("x", DataType::kF32, {2, 8, 16, 16});
  const ValueId w = b.Param("w", DataType::kF32, {64, 4, 3, 3});
  b.Output(b.Conv2d(x, w));
  EXPECT_TRUE(absl::IsInvalidArgument(b.Build().status()));
}

TEST(PlanBuilderTest, BuildRefusesValuesOfAnotherBuilder) {
  PlanBuilder other;
  ValueId foreign = other.Input("x", DataType::kF32, {4});
  for (int i = 0; i < 5; ++i) foreign = other.Relu(foreign);
  PlanBuilder b;
  b.Output(b.Add(b.Input("x", DataType::kF32, {4}), foreign));
  EXPECT_TRUE(absl::IsInvalidArgument(b.Build().status()));
}

}  // namespace
}  // namespace kiln
