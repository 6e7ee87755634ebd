// Input that is laid down as halves for convolutions of one tap (lay_lines.cu,
// conv_lines.cuh). Prevents scales of other pixels, parts of a number that do
// not belong together, NaNs where an infinity meets the rest of a weight, and
// rows that end within an access.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/full_matrix.h"
#include "tests/jit/compile/fastest_schedule.h"
#include "tests/ptx/conv_plan_text.h"
#include "tests/ptx/plan_testing.h"

namespace kiln::ptx {
namespace {

struct LaidPlan {
  std::string name;
  std::string text;
  std::vector<double> row_factors = {1};
};

// Input `factor` times as large, and weights as far the other way.
std::string CompensatedLines(double factor) {
  return fmt::format(
      "input x: f32[2,264,12,20]\nparam v: f32[264,264,1,1]\n"
      "a = mul(x, {})\nw = mul(v, {})\nc = conv2d(a, w)\ny = relu(c)\n"
      "output y\n",
      factor, 1 / factor);
}

std::vector<LaidPlan> LaidPlans() {
  return {
      {"lines_of_196", Conv("3,264,14,14", "520,264,1,1", "", "y = gelu(c)")},
      {"rows_of_seven", Conv("9,264,7,7", "520,264,1,1", "", "y = relu(c)")},
      {"channels_of_several_blocks",
       Conv("2,700,8,41", "200,700,1,1", "", "y = relu(c)")},
      {"channels_read_twice",
       Conv("1,4200,3,11", "136,4200,1,1", "", "y = relu(c)")},
      {"residual", Conv("3,264,14,16", "264,264,1,1", "", "y = add(c, x)")},
      {"stored_in_16_bits",
       Conv("3,264,14,16", "264,264,1,1", "", "y = cast(c, dtype=f16)")},
      {"means_of_images", Conv("3,264,14,16", "264,264,1,1", "",
                               "y = mean(c, dim=[2,3], keepdim=true)")},
      {"input_of_16_bits",
       "input x: f16[3,264,12,20]\nparam w: f32[264,264,1,1]\n"
       "c = conv2d(x, w)\ny = relu(c)\noutput y\n"},
      {"computed_input",
       "input x: f32[3,264,12,20]\nparam w: f32[264,264,1,1]\n"
       "a = group_norm(x, num_groups=8)\nc = conv2d(a, w)\ny = relu(c)\n"
       "output y\n"},
      // Finite, though scaled sums times a pixel's factor alone would not be.
      {"large_pixels", CompensatedLines(1e35)},
      {"small_pixels", CompensatedLines(1e-35)},
      // As long as each other in the end.
      {"pixels_far_apart",
       Conv("2,264,12,20", "264,264,1,1", "",
            "q = mul(c, c)\ns = sum(q, dim=1, keepdim=true)\nl = sqrt(s)\n"
            "y = div(c, l)"),
       {1, 1e-14, 1e12, 300, 0.002}},
  };
}

bool IsLaidDownFor(const Kernel& kernel) { return kernel.lays(); }

// Also with an infinity and a NaN among the inputs.
void ExpectAgreementOf(const LaidPlan& plan, const std::string& grade) {
  InputOptions inputs;
  inputs.row_factors = plan.row_factors;
  ExpectAgreementOfKind("grade " + grade + "\n" + plan.text, 1, inputs,
                        IsLaidDownFor);
}

TEST(PtxLaidLinesTest, AgreeWithTheReference) {
  size_t turn = 0;
  for (const LaidPlan& plan : LaidPlans()) {
    for (const std::string& grade : GradesInTurn(turn++)) {
      SCOPED_TRACE(plan.name + " in " + grade);
      ExpectAgreementOf(plan, grade);
    }
  }
}

TEST(PtxLaidLinesTest, ImagesHaveScalesOfTheirOwn) {
  const std::string text =
      "grade tf32\n" + Conv("8,264,14,14", "384,264,1,1", "", "y = gelu(c)");
  const std::optional<Tuning> tuning =
      FindConvRank(text, {"sm_90a", 4}, IsLaidDownFor);
  ASSERT_TRUE(tuning.has_value());
  const PlanKernels kernels = Compiled(text, "sm_90a/4", {.tuning = *tuning});
  InputOptions inputs;
  inputs.image_factors = {1, 1e-3, 50};
  ExpectAgreement(kernels, inputs, {{}});
}

}  // namespace
}  // namespace kiln::ptx
