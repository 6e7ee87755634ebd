// Convolutions in `fp32` where tensor cores round sums as a GPU does. Prevents
// errors beyond the grade's, twice PyTorch's and an ulp, which sums of many
// products of one chunk have.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/conv_shape_plans.h"
#include "tests/ptx/conv_plan_text.h"
#include "tests/ptx/plan_testing.h"

namespace kiln::ptx {
namespace {

constexpr char kStore[] = "y = neg(c)";
constexpr char kTarget[] = "sm_90a/132";

// Of cuDNN, the least that was measured on an H200, for sums as long as these.
constexpr double kErrorOfTransposed = 1.0e-7;
constexpr double kErrorOfOthers = 1.5e-7;

void ExpectErrorsOfGrade(const std::string& text, double of_pytorch) {
  SCOPED_TRACE(text);
  const PlanKernels kernels = Compiled(text, kTarget);
  ASSERT_FALSE(kernels.programs.empty());
  const auto reference = RunReference(kernels.canonical);
  ASSERT_TRUE(reference.ok()) << reference.status();
  PlanRunOptions options;
  options.rounds_sums = true;
  const auto comparison = CompareWithReference(kernels, *reference, options);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_LE(comparison->norm_error, 2 * of_pytorch + 0x1p-23);
}

bool IsTransposed(const std::string& text) {
  return text.find("conv_transpose2d") != std::string::npos;
}

TEST(PtxLongSumsTest, ErrorsAreOfTheGrade) {
  std::vector<std::string> texts = {
      Transpose("2,64,14,14", "64,64,4,4", "stride=2, padding=1", kStore),
      Conv("2,1024,14,14", "64,1024,1,1", "", kStore)};
  for (const NamedPlan& plan : LongSums()) texts.push_back(plan.text);
  for (const std::string& text : texts) {
    ExpectErrorsOfGrade(
        text, IsTransposed(text) ? kErrorOfTransposed : kErrorOfOthers);
  }
}

// So that these tests see what they are for.
TEST(PtxLongSumsTest, RoundedSumsOfLongChunksShow) {
  const std::string text =
      Conv("2,256,14,14", "64,256,3,3", "padding=1", kStore, "f16") +
      "output c: f32\n";
  const PlanKernels kernels = Compiled(text, kTarget);
  ASSERT_FALSE(kernels.programs.empty());
  const auto reference = RunReference(kernels.canonical);
  ASSERT_TRUE(reference.ok()) << reference.status();
  PlanRunOptions options;
  const auto exact = CompareWithReference(kernels, *reference, options);
  options.rounds_sums = true;
  const auto rounded = CompareWithReference(kernels, *reference, options);
  ASSERT_TRUE(exact.ok() && rounded.ok());
  EXPECT_NE(exact->norm_error, rounded->norm_error);
}

}  // namespace
}  // namespace kiln::ptx
