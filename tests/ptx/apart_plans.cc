#include "tests/ptx/apart_plans.h"

#include "tests/ptx/conv_plan_text.h"

namespace kiln::ptx {

std::vector<TemplatePlan> ApartPlans() {
  const std::string file = "conv_wgmma.cu";
  const std::string tf32 = "grade tf32\n";
  return {
      // Of operands as they are stored, in two parts and in one.
      {"conv_apart_bf16", file,
       Conv("1,96,8,64", "32,96,3,3", "padding=1", "y = leaky_relu(c)", "bf16"),
       "sm_90a/2"},
      {"conv_apart_parts", file,
       Conv("1,64,8,64", "128,64,3,3", "padding=1", "y = relu(c)"), "sm_90a/4"},
      {"conv_apart_one_part", file,
       tf32 + Conv("1,64,8,64", "128,64,3,3", "padding=1", "y = relu(c)"),
       "sm_90a/4"},
      // Tiles side by side; rows of phases; octets that lie apart, of which the
      // last product has one; both phases of a tile's columns.
      {"conv_apart_side_by_side", file,
       Conv("1,32,9,128", "48,32,3,3", "padding=1", "y = relu(c)"), "sm_90a/2"},
      {"conv_apart_interleaved", file,
       Conv("1,64,16,64", "128,64,3,3", "padding=4, dilation=4", "y = relu(c)"),
       "sm_90a/2"},
      {"conv_apart_octets", file,
       Conv("1,8,12,64", "48,8,5,5", "padding=2", "y = gelu(c)"), "sm_90a/2"},
      {"conv_apart_phases", file,
       Transpose("1,32,7,64", "32,32,2,4", "stride=[1,2], padding=[0,1]",
                 "y = relu(c)"),
       "sm_90a/2"},
      {"conv_apart_uneven_phases", file,
       Transpose("1,16,7,63", "16,40,3,3", "stride=2, output_padding=1",
                 "y = relu(c)", "f16"),
       "sm_90a/4"},
      // A stride across alone; groups; rows that are shorter than a product.
      {"conv_apart_stride", file,
       tf32 + Conv("1,40,16,128", "40,40,4,4", "stride=[1,2], padding=1",
                   "y = relu(c)"),
       "sm_90a/2"},
      {"conv_apart_grouped", file,
       tf32 + Conv("1,16,12,64", "160,8,3,3", "padding=1, groups=2",
                   "y = relu(c)"),
       "sm_90a/2"},
      {"conv_apart_short", file,
       tf32 + Conv("2,16,7,56", "64,16,3,3", "padding=12, dilation=12",
                   "y = relu(c)"),
       "sm_90a/1"},
      // Statistics of groups that blocks cut, and in strips whose tiles take
      // rows from the one above.
      {"conv_apart_cut_groups", file,
       Conv("1,64,9,64", "320,64,3,3", "padding=1",
            "n = group_norm(c, num_groups=16)\ny = relu(n)"),
       "sm_90a/2"},
      {"conv_apart_carried", file,
       Conv("1,40,9,64", "128,40,3,3", "padding=1",
            "n = group_norm(c, num_groups=8)\ny = relu(n)"),
       "sm_90a/1"},
      // What follows: a tensor of the same size, reductions over channels and
      // images, windows.
      {"conv_apart_residual", file,
       Conv("1,64,8,128", "64,64,3,3", "padding=1",
            "a = add(c, x)\ny = relu(a)"),
       "sm_90a/4"},
      {"conv_apart_amax", file,
       Conv("1,8,12,64", "48,8,5,5", "padding=2", "y = amax(c, dim=1)"),
       "sm_90a/2"},
      {"conv_apart_softmax", file,
       Conv("1,64,8,64", "48,64,3,3", "padding=1", "y = softmax(c, dim=1)",
            "f16"),
       "sm_90a/2"},
      {"conv_apart_images", file,
       tf32 + Conv("1,64,8,64", "128,64,3,3", "padding=1",
                   "y = mean(c, dim=[2,3])"),
       "sm_90a/4"},
      {"conv_apart_pool", file,
       tf32 + Conv("1,48,8,64", "24,48,3,3", "padding=1",
                   "r = relu(c)\ny = max_pool2d(r, kernel_size=2)"),
       "sm_90a/2"},
  };
}

}  // namespace kiln::ptx
