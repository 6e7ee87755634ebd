#include "tests/ptx/long_sum_plans.h"

#include "tests/ptx/conv_plan_text.h"

namespace kiln::ptx {

std::vector<TemplatePlan> LongSumPlans() {
  const std::string file = "conv_wgmma.cu";
  const std::string target = "sm_90a/4";
  std::vector<double> large_chunk(32, 100.0);
  large_chunk.insert(large_chunk.end(), 32, 300.0);
  return {
      // Parts are runs of calls, in a loop.
      {"long_sums_of_calls",
       file,
       Transpose("1,64,48,40", "64,64,3,3", "padding=1",
                 "y = group_norm(c, num_groups=8)"),
       target,
       true,
       {1},
       large_chunk},
      // Parts are steps of the only call, of one chunk and of several.
      {"long_sums_of_a_chunk", file,
       Transpose("4,16,9,9", "16,24,5,5", "padding=2", "y = gelu(c)"), target,
       true},
      {"long_sums_of_steps", file,
       Conv("2,24,19,30", "40,24,7,7", "padding=3", "y = relu(c)"), target,
       true},
      {"long_sums_of_few_channels", file,
       Conv("2,3,40,60", "64,3,9,9", "padding=4", "y = relu(c)"), target, true},
      {"long_sums_of_a_part_of_the_filter", file,
       Conv("2,24,19,30", "40,24,7,7", "stride=2", "y = relu(c)"), target,
       true},
      // Of a phase some parts may have no taps.
      {"long_sums_of_phases", file,
       Transpose("2,32,11,13", "32,24,7,7", "stride=2, padding=3",
                 "y = relu(c)"),
       target, true},
      // Beside values that are held, and shared by the blocks of a cluster.
      {"long_sums_held", file,
       Transpose("9,32,16,24", "32,64,3,3", "padding=1",
                 "n = group_norm(c, num_groups=8)\ny = silu(n)"),
       target, true},
      {"long_sums_shared", file,
       Conv("1,256,10,12", "64,256,5,5", "padding=2", "y = relu(c)"),
       "sm_90a/16", true},
      {"long_sums_of_channels", file,
       Conv("2,64,20,20", "32,64,5,5", "",
            "y = logsumexp(c, dim=1, keepdim=true)"),
       target, true},
  };
}

}  // namespace kiln::ptx
