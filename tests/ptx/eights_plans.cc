#include "tests/ptx/eights_plans.h"

#include "tests/ptx/conv_plan_text.h"

namespace kiln::ptx {

std::vector<TemplatePlan> EightsPlans() {
  const std::string file = "conv_wgmma.cu";
  return {
      {"conv_eights", file,
       Conv("4,64,16,16", "128,64,3,3", "padding=1", "y = relu(c)", "f16"),
       "sm_90a/8"},
      // Columns that are not in the output; octets that lie apart, of which
      // the last product has one; numbers that are scaled, in parts.
      {"conv_eights_odd", file,
       Conv("4,64,7,7", "128,64,3,3", "padding=1", "y = silu(c)", "f16"),
       "sm_90a/8"},
      {"conv_eights_octets", file,
       Conv("2,64,16,16", "64,64,5,5", "padding=2", "y = gelu(c)", "bf16"),
       "sm_90a/2"},
      {"conv_eights_last_octet", file,
       Conv("4,8,16,16", "64,8,5,5", "padding=2", "y = relu(c)"), "sm_90a/16"},
      {"conv_eights_f32", file,
       Conv("4,24,16,16", "64,24,3,3", "padding=1", "y = relu(c)"),
       "sm_90a/16"},
      // With a stride, of as many planes of the patch.
      {"conv_eights_stride", file,
       Conv("4,64,16,16", "128,64,4,4", "stride=2, padding=1", "y = relu(c)",
            "f16"),
       "sm_90a/4"},
      {"conv_eights_stride_moments", file,
       Conv("4,32,30,32", "64,32,3,3", "stride=2, padding=1",
            "g = gelu(c)\ny = group_norm(g, num_groups=8)"),
       "sm_90a/8"},
      {"conv_eights_stride_of_three", file,
       Conv("4,48,24,24", "64,48,5,5", "stride=3, padding=2", "y = silu(c)",
            "bf16"),
       "sm_90a/4"},
      // Two parts of the pixels; both phases of a tile's columns; a tensor read
      // beside the sums.
      {"conv_eights_parts", file,
       Conv("4,64,16,16", "64,64,3,3", "padding=1", "y = relu(c)"), "sm_90a/8"},
      {"conv_eights_phases", file,
       Transpose("4,64,8,8", "64,64,4,4", "stride=2, padding=1", "y = relu(c)",
                 "f16"),
       "sm_90a/8"},
      {"conv_eights_beside", file,
       Conv("2,128,8,8", "128,128,3,3", "padding=1",
            "a = add(c, x)\ny = relu(a)", "f16"),
       "sm_90a/4"},
      // Statistics from registers, of sums and of what is computed of these;
      // reductions over images.
      {"conv_eights_moments", file,
       Conv("4,64,16,16", "128,64,3,3", "padding=1",
            "n = group_norm(c, num_groups=8)\ny = relu(n)"),
       "sm_90a/16"},
      {"conv_eights_gelu_moments", file,
       Conv("4,128,16,16", "128,128,3,3", "padding=1",
            "g = gelu(c)\ny = group_norm(g, num_groups=8)", "f16"),
       "sm_90a/16"},
      {"conv_eights_images", file,
       Conv("4,128,16,16", "128,128,3,3", "padding=1", "y = amax(c, dim=[2,3])",
            "f16"),
       "sm_90a/8"},
      // Where pixels are the rows of products: reductions over channels.
      {"conv_eights_logsumexp", file,
       Conv("1,48,32,32", "64,48,3,3", "padding=1",
            "y = logsumexp(c, dim=1, keepdim=true)"),
       "sm_90a/2"},
      {"conv_eights_softmax", file,
       Conv("2,32,16,16", "64,32,3,3", "padding=1", "y = softmax(c, dim=1)"),
       "sm_90a/2"},
  };
}

}  // namespace kiln::ptx
