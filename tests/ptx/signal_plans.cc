#include "tests/ptx/signal_plans.h"

#include "tests/ptx/conv_plan_text.h"

namespace kiln::ptx {

std::vector<TemplatePlan> SignalPlans() {
  const std::string file = "conv_wgmma.cu";
  return {
      {"signal_f16", file,
       Conv("2,64,1,2048", "64,64,1,3", "padding=[0,1]", "y = leaky_relu(c)",
            "f16"),
       "sm_90a/4"},
      // Taps far apart; rows of 100 places; numbers that are scaled.
      {"signal_dilated", file,
       Conv("2,64,1,1500", "128,64,1,7", "padding=[0,9], dilation=[1,3]",
            "y = leaky_relu(c)", "f16"),
       "sm_90a/4"},
      {"signal_f32", file,
       Conv("2,24,1,2048", "64,24,1,5", "padding=[0,2]", "y = gelu(c)"),
       "sm_90a/4", true},
      // Octets of several columns.
      {"signal_one_channel", file,
       Conv("2,1,1,4096", "64,1,1,9", "padding=[0,4]", "y = relu(c)"),
       "sm_90a/4", true},
      {"signal_groups", file,
       Conv("2,128,1,2048", "128,32,1,3", "padding=[0,1], groups=4",
            "y = relu(c)", "bf16"),
       "sm_90a/4"},
      {"signal_residual", file,
       Conv("2,64,1,2048", "64,64,1,3", "padding=[0,1]",
            "a = add(c, x)\ny = relu(a)", "f16"),
       "sm_90a/4"},
      // Held, and reduced.
      {"signal_norm", file,
       Conv("3,64,1,2048", "64,64,1,3", "padding=[0,1]",
            "n = group_norm(c, num_groups=8)\ny = silu(n)", "f16"),
       "sm_90a/16"},
      {"signal_mean", file,
       Conv("2,64,1,2048", "64,64,1,3", "padding=[0,1]",
            "r = relu(c)\ny = mean(r, dim=[2,3])"),
       "sm_90a/4", true},
      {"plain_signal", "conv2d.cu",
       Conv("2,8,1,2048", "8,2,1,3", "padding=[0,1], groups=4", "y = tanh(c)")},
  };
}

}  // namespace kiln::ptx
