#include "tests/ptx/correlation_plans.h"

#include "tests/ptx/conv_plan_text.h"

namespace kiln::ptx {
namespace {

// What comes out is as wrong as the statistics are: the largest of the
// normalised channels.
TemplatePlan Normalised(const std::string& name, const std::string& x,
                        const std::string& w, const std::string& attributes,
                        int groups,
                        const std::vector<double>& row_factors = {1}) {
  TemplatePlan plan{
      name, "correlate.cu",
      "grade tf32\n" + Conv(x, w, attributes,
                            fmt::format("n = group_norm(c, num_groups={})\n"
                                        "y = amax(n, dim=1, keepdim=true)",
                                        groups)),
      "sm_90a/2"};
  plan.row_factors = row_factors;
  return Tuned(plan, {.correlations = 1});
}

// Of an input `factor` times as large, and weights as far the other way.
TemplatePlan Compensated(const std::string& name, double factor) {
  return Tuned(
      {name, "correlate.cu",
       fmt::format("grade tf32\ninput x: f32[2,8,24,36]\n"
                   "input v: f32[64,8,3,3]\na = mul(x, {})\nw = mul(v, {})\n"
                   "c = conv2d(a, w)\nn = group_norm(c, num_groups=16)\n"
                   "y = amax(n, dim=1)\noutput y\n",
                   factor, 1 / factor),
       "sm_90a/2"},
      {.correlations = 1});
}

}  // namespace

std::vector<TemplatePlan> CorrelationPlans() {
  const std::string bias =
      "grade tf32\ninput x: f32[2,8,24,36]\nparam w: f32[64,8,3,3]\n"
      "param b: f32[64]\nc = conv2d(x, w, b)\n"
      "n = group_norm(c, num_groups=16)\ny = amax(n, dim=1)\noutput y\n";
  TemplatePlan growing =
      Tuned({"correlate_growing", "correlate.cu",
             "grade tf32\ninput x: f32[1,8,24,36]\nparam w: f32[64,8,3,3]\n"
             "a = abs(x)\nc = conv2d(a, w)\nn = group_norm(c, num_groups=8)\n"
             "y = amax(n, dim=1)\noutput y\n",
             "sm_90a/1"},
            {.correlations = 1});
  growing.row_factors = {1, 1, 3, 1, 900, 1, 1, 1};
  return {
      Tuned({"correlate_bias", "correlate.cu", bias, "sm_90a/2"},
            {.correlations = 1}),
      Normalised("correlate_k3", "2,8,24,36", "64,8,3,3", "", 16),
      // Padding, few channels, widths that no access of 16 bytes divides.
      Normalised("correlate_padded", "2,3,21,30", "64,3,3,3", "padding=1", 8),
      // Several blocks beside each other, of which the last has few columns,
      // and more channels out than are done at once.
      Normalised("correlate_wide", "1,8,40,150", "96,8,3,3", "", 6),
      Normalised("correlate_wide_padded", "1,5,20,133", "64,5,3,3",
                 "padding=[0,1]", 4),
      // Filters with other numbers of taps; all rows are edges but one.
      Normalised("correlate_k2_by_1", "2,5,30,33", "64,5,2,1", "", 8),
      Normalised("correlate_k1_by_3", "2,8,24,36", "64,8,1,3", "padding=[0,1]",
                 8),
      Normalised("correlate_k2", "2,7,9,33", "64,7,2,2", "", 8),
      Normalised("correlate_k1", "3,8,24,36", "64,8,1,1", "", 16),
      Normalised("correlate_few_rows", "2,8,5,40", "64,8,3,3", "", 8),
      // Images that a filter of one tap takes as others, and weights and input
      // that kernels of the plan make, which the second kernel reads early.
      Normalised("correlate_reshaped", "4,8,14,14", "64,8,1,1", "", 16),
      Tuned({"correlate_computed", "correlate.cu",
             "grade tf32\ninput x: f32[2,8,24,36]\ninput v: f32[64,8,3,3]\n"
             "a = relu(x)\nw = mul(v, 0.5)\nc = conv2d(a, w, padding=1)\n"
             "n = group_norm(c, num_groups=16)\ny = amax(n, dim=1)\noutput y\n",
             "sm_90a/2"},
            {.correlations = 1}),
      // Products of two values alone would be infinite, or nothing.
      Compensated("correlate_large", 1e25),
      Compensated("correlate_small", 1e-25),
      // The scale of rows that are there already must change; those are no
      // noise, which would hide it.
      growing,
      Normalised("correlate_far_apart", "1,8,24,36", "64,8,3,3", "", 8,
                 {1e-9, 1e9, 1, 1e-20, 1e15, 1, 1}),
  };
}

}  // namespace kiln::ptx
