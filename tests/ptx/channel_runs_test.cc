// Reductions over channels from registers (conv_channel_runs.cuh). Prevents
// values of other positions or channels, rows that are laid down before others
// are taken, and powers without their largest where that is not finite.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/ptx/conv_plan_text.h"
#include "tests/ptx/plan_testing.h"

namespace kiln::ptx {
namespace {

struct ReducedPlan {
  std::string name;
  std::string text;
};

std::string Reduced(const std::string& op) {
  return "r = relu(c)\ny = " + op + "(r, dim=1)";
}

std::vector<ReducedPlan> ReducedPlans() {
  const std::string norm =
      "n = group_norm(c, num_groups=8)\nt = tanh(n)\n"
      "h = hardswish(t)\nr = add(h, c)\n"
      "y = logsumexp(r, dim=1, keepdim=true)";
  return {
      {"logsumexp", Conv("3,8,10,22", "64,8,3,3", "", norm)},
      {"logsumexp_tf32",
       "grade tf32\n" + Conv("3,8,10,22", "64,8,3,3", "", norm)},
      {"logsumexp_f16", Conv("2,8,18,30", "64,8,3,3", "", norm, "f16")},
      {"amax", Conv("2,16,8,34", "64,16,3,3", "padding=1", Reduced("amax"))},
      {"amin", Conv("2,16,8,34", "64,16,3,3", "padding=1", Reduced("amin"))},
      {"sum_bf16", Conv("2,24,9,24", "64,24,3,3", "", Reduced("sum"), "bf16")},
      {"mean", Conv("2,24,8,18", "64,24,3,3", "padding=2, dilation=2",
                    Reduced("mean"))},
  };
}

TEST(PtxChannelRunsTest, AgreeWithTheReference) {
  for (const ReducedPlan& plan : ReducedPlans()) {
    SCOPED_TRACE(plan.name);
    ExpectAgreementAnyway(plan.text, "sm_90a/4", [](const ConvGeometry&) {});
    for (const Kernel& kernel :
         Compiled(plan.text, "sm_90a/4").schedule.kernels) {
      if (!kernel.conv || !kernel.demands.all_channels_in_a_block) continue;
      EXPECT_TRUE(kernel.conv->channel_rows);
    }
  }
}

}  // namespace
}  // namespace kiln::ptx
