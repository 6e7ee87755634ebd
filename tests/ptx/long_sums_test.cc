// Convolutions in `fp32` where tensor cores round sums as a GPU does. Prevents
// errors beyond the grade's, twice PyTorch's and an ulp, which sums of many
// products of one chunk have.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "jit/compile/conv_geometry.h"
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

TEST(PtxLongSumsTest, TransposedConvolutionsHaveErrorsOfTheirGrade) {
  for (const auto& [x, w, attributes] : std::vector<std::array<std::string, 3>>{
           {"4,32,16,16", "32,24,3,3", "padding=1"},
           {"4,32,16,16", "32,24,4,4", "padding=2"},
           {"16,56,8,8", "56,12,4,4", "padding=1"},
           {"4,16,9,9", "16,24,5,5", "padding=2"},
           {"4,32,16,16", "32,24,5,5", "stride=2, padding=2"},
           {"4,16,9,9", "16,24,7,7", "padding=3"},
           {"2,64,14,14", "64,64,4,4", "stride=2, padding=1"}}) {
    ExpectErrorsOfGrade(Transpose(x, w, attributes, kStore),
                        kErrorOfTransposed);
  }
}

TEST(PtxLongSumsTest, OtherConvolutionsHaveErrorsOfTheirGrade) {
  for (const auto& [x, w, attributes] : std::vector<std::array<std::string, 3>>{
           {"16,32,8,8", "12,32,5,5", "padding=2"},
           {"4,16,9,9", "24,16,7,7", "padding=3"},
           {"2,64,14,14", "64,64,7,7", "stride=2, padding=3"},
           {"4,16,9,9", "24,16,9,9", "padding=4"},
           {"1,512,13,13", "64,512,1,7", "padding=[0,3]"},
           {"1,512,13,13", "64,512,3,3", "padding=1"},
           {"2,1024,14,14", "64,1024,1,1", ""}}) {
    ExpectErrorsOfGrade(Conv(x, w, attributes, kStore), kErrorOfOthers);
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
