// Results that a convolution leaves as lines for the next (lay_results.h,
// conv_rounded.cuh, bound_results.cu). Prevents scales by which results
// overflow, of other pixels, or of ops that make more of a number than was
// thought; and lines that end elsewhere than the next convolution thinks.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "tests/full_matrix.h"
#include "tests/jit/compile/fastest_schedule.h"
#include "tests/ptx/plan_testing.h"

namespace kiln::ptx {
namespace {

struct LaidPlan {
  std::string name;
  std::string text;
  InputOptions inputs = {};
};

// Convolutions of `x` to c and of g to y, with `ops` between them.
std::string Chain(const std::string& x, const std::string& w,
                  const std::string& v, const std::string& ops,
                  const std::string& parameters = "") {
  return fmt::format(
      "input x: f32[{}]\nparam w: f32[{}]\nparam v: f32[{}]\n{}{}\n"
      "y = conv2d(g, v)\noutput y\n",
      x, w, v, parameters, ops);
}

std::vector<LaidPlan> LaidPlans() {
  const auto rows_of_196 = [](const std::string& ops,
                              const std::string& parameters = "") {
    return Chain("2,384,14,14", "1032,384,1,1", "136,1032,1,1", ops,
                 parameters);
  };
  InputOptions far_apart;
  far_apart.row_factors = {1, 1e-14, 1e12, 300, 0.002};
  far_apart.image_factors = {1e-3, 50};
  return {
      {"rows_of_196", rows_of_196("c = conv2d(x, w)\ng = gelu(c)")},
      {"pixels_far_apart", rows_of_196("c = conv2d(x, w)\ng = gelu(c)"),
       far_apart},
      {"rows_of_20",
       Chain("2,264,12,20", "1032,264,1,1", "136,1032,1,1",
             "c = conv2d(x, w, b)\ng = relu(c)", "param b: f32[1032]\n")},
      {"rows_of_200", Chain("1,512,1,200", "1024,512,1,1", "136,1024,1,1",
                            "c = conv2d(x, w)\nd = exp(c)\ng = tanh(d)")},
      {"factor", rows_of_196("c = conv2d(x, w)\nd = mul(c, s)\n"
                             "e = sub(1e4, d)\ng = mul(e, 3.0)",
                             "param s: f32[1032,1,1]\n")},
      {"wide_limits",
       rows_of_196("c = conv2d(x, w)\nd = clamp(c, min=-1e12, max=1e12)\n"
                   "g = leaky_relu(d)")},
      {"gated", rows_of_196("m = mean(x, dim=[2,3], keepdim=true)\n"
                            "h = conv2d(m, p)\ns = sigmoid(h)\n"
                            "c = conv2d(x, w)\nt = clamp(c, min=0, max=6)\n"
                            "g = mul(s, t)",
                            "param p: f32[1032,384,1,1]\n")},
      {"batch_norm", rows_of_196("c = conv2d(x, w)\n"
                                 "d = batch_norm(c, m, q, k, h, eps=9)\n"
                                 "g = relu(d)",
                                 "param m: f32[1032]\nparam q: f32[1032]\n"
                                 "param k: f32[1032]\nparam h: f32[1032]\n")},
  };
}

// The fastest candidate of which a convolution leaves lines.
std::optional<Tuning> FindTuning(const std::string& text) {
  return FindConvRank(text, {"sm_90a", 1}, [](const Kernel& kernel) {
    return kernel.LaysResults();
  });
}

// Also with an infinity and a NaN among the inputs.
void ExpectAgreementOf(const LaidPlan& plan, const std::string& grade) {
  const std::string text = "grade " + grade + "\n" + plan.text;
  const std::optional<Tuning> tuning = FindTuning(text);
  ASSERT_TRUE(tuning.has_value());
  ExpectAgreementWithSpecials(Compiled(text, "sm_90a/1", {.tuning = *tuning}),
                              plan.inputs, {{}}, {Interrupted()});
}

TEST(PtxLaidResultsTest, AgreeWithTheReference) {
  size_t turn = 0;
  for (const LaidPlan& plan : LaidPlans()) {
    for (const std::string& grade : GradesInTurn(turn++)) {
      SCOPED_TRACE(plan.name + " in " + grade);
      ExpectAgreementOf(plan, grade);
    }
  }
}

// A product that is rounded here and not there leaves its last places where it
// should cancel: of inputs near 0 that is far more than results could be.
TEST(PtxLaidResultsTest, StayFiniteWhereAMeanIsTheBias) {
  const std::string text =
      "grade tf32\n" +
      Chain("2,384,14,14", "1032,384,1,1", "136,1032,1,1",
            "c = conv2d(x, w, b)\ng = batch_norm(c, b, q, k, eps=9)",
            "param b: f32[1032]\nparam q: f32[1032]\nparam k: f32[1032]\n");
  const std::optional<Tuning> tuning = FindTuning(text);
  ASSERT_TRUE(tuning.has_value());
  const PlanKernels kernels = Compiled(text, "sm_90a/1", {.tuning = *tuning});
  InputOptions inputs;
  inputs.row_factors = {1e-30};
  const auto reference = RunReference(kernels.canonical, inputs);
  ASSERT_TRUE(reference.ok()) << reference.status();
  const auto result = CompareWithReference(kernels, *reference);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->num_wrong, 0) << result->first_wrong;
}

}  // namespace
}  // namespace kiln::ptx
