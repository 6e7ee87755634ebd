#include "client/cli/verification.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "jit/plan/plan_text.h"
#include "jit/plan/validate.h"

namespace kiln::cli {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Bound BoundOfText(const char* text, bool on_cpu) {
  const Plan plan = *ParsePlanText(text);
  return BoundOf(plan, *ValidatePlan(plan), plan.outputs[0].dtype, on_cpu);
}

constexpr char kConv[] =
    "input x: f32[1,8,9,9]\nparam w: f32[4,8,3,3]\ny = conv2d(x, w)\n"
    "output y\n";

TEST(VerificationTest, MeasuresNormAndWorstElement) {
  const Deviation deviation =
      Compare(DataType::kF32, {1, 2, 3.5, 4}, {1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(deviation.max_abs, 0.5);
  EXPECT_EQ(deviation.max_at, 2);
  EXPECT_DOUBLE_EQ(deviation.relative_norm, 0.5 / std::sqrt(30.0));
  EXPECT_EQ(deviation.max_wanted, 4);
}

TEST(VerificationTest, SpecialValuesMustMatch) {
  EXPECT_EQ(Compare(DataType::kF32, {kNan, kInf, -kInf}, {kNan, kInf, -kInf})
                .unequal_special,
            0);
  EXPECT_EQ(Compare(DataType::kF32, {1, kNan, 3, -kInf}, {kNan, 1, kInf, kInf})
                .unequal_special,
            4);
  EXPECT_GT(Compare(DataType::kF32, {-kInf}, {3}).max_abs, 3e38);
}

// Prevents overflow that is right from being called wrong.
TEST(VerificationTest, OverflowIsThatOfTheOutputsType) {
  constexpr DataType kF16 = DataType::kF16;
  const Bound bound = {0x1p-11, 0x1p-11};
  const auto holds = [&](double got, double wanted) {
    return bound.Holds(Compare(kF16, {1, got}, {1, wanted}));
  };
  EXPECT_TRUE(holds(kInf, 1e5));
  EXPECT_TRUE(holds(-kInf, -1e300));
  EXPECT_TRUE(bound.Holds(Compare(DataType::kF32, {kInf}, {1e39})));
  // On either side of 65520, which is halfway from the largest finite value.
  EXPECT_TRUE(holds(65504, 65521));
  EXPECT_TRUE(holds(kInf, 65519));
  EXPECT_FALSE(holds(65504, 1e5));
  EXPECT_FALSE(holds(kInf, 65000));
  EXPECT_FALSE(holds(kInf, -1e5));
  EXPECT_FALSE(holds(1, 1e300));
  EXPECT_FALSE(holds(kNan, 1e5));
}

// Prevents a verdict of "ok" for results that are not right.
TEST(VerificationTest, BoundSeparatesRoundingFromMistakes) {
  const Bound bound = BoundOfText(kConv, false);
  const std::vector<double> wanted(100, 1.0);
  std::vector<double> got(100, 1.0 + 1e-6);
  EXPECT_TRUE(bound.Holds(Compare(DataType::kF32, got, wanted)));
  got[7] = 1.01;
  EXPECT_FALSE(bound.Holds(Compare(DataType::kF32, got, wanted)));
  got[7] = kNan;
  EXPECT_FALSE(bound.Holds(Compare(DataType::kF32, got, wanted)));
  EXPECT_FALSE(bound.Holds(
      Compare(DataType::kF32, std::vector<double>(100, 0.0), wanted)));
}

TEST(VerificationTest, CpuMayOnlyRoundOnce) {
  const Bound bound = BoundOfText(kConv, true);
  EXPECT_TRUE(bound.Holds(Compare(DataType::kF32, {1.0 + 0x1p-25}, {1.0})));
  EXPECT_FALSE(bound.Holds(Compare(DataType::kF32, {1.0 + 0x1p-22}, {1.0})));
}

TEST(VerificationTest, Tf32AndHalfMayDeviateMore) {
  const Bound fp32 = BoundOfText(kConv, false);
  std::string tf32 = "grade tf32\n";
  tf32 += kConv;
  EXPECT_GT(BoundOfText(tf32.c_str(), false).relative_norm,
            100 * fp32.relative_norm);
  std::string half = kConv;
  half.replace(half.rfind("output y"), 8, "output y: f16");
  EXPECT_GT(BoundOfText(half.c_str(), false).relative_norm, 0x1p-11);
}

}  // namespace
}  // namespace kiln::cli
