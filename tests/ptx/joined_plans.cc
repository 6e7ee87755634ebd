#include "tests/ptx/joined_plans.h"

#include "tests/ptx/conv_plan_text.h"

namespace kiln::ptx {
namespace {

TemplatePlan Joined(const std::string& name, const std::string& text,
                    bool has_products = false) {
  TemplatePlan plan = {"conv_joined_" + name, "conv_wgmma.cu", text,
                       "sm_90a/1"};
  plan.has_products = has_products;
  return plan;
}

}  // namespace

std::vector<TemplatePlan> JoinedPlans() {
  return {
      // Numbers as they are stored; two pixels at once, an odd image, lines
      // that are turned.
      Joined("pairs", Conv("1,64,20,20", "64,4,3,3", "padding=1, groups=16",
                           "y = relu(c)", "f16")),
      Joined("odd", Conv("1,32,13,21", "32,4,3,3", "padding=1, groups=8",
                         "y = relu(c)", "bf16")),
      Joined("stride",
             Conv("1,64,32,32", "64,8,3,3", "stride=2, padding=1, groups=8",
                  "y = relu(c)", "f16")),
      Joined("five", Conv("1,40,16,24", "40,5,3,3", "padding=1, groups=8",
                          "y = silu(c)", "f16")),
      Joined("one_tap",
             Conv("1,24,16,16", "48,8,1,1", "groups=3", "y = relu(c)", "f16")),
      // Scaled ones, in parts, of several chunks.
      Joined(
          "scaled",
          Conv("1,32,16,16", "32,4,3,3", "padding=1, groups=8", "y = relu(c)"),
          true),
      Joined(
          "chunks",
          Conv("4,64,14,14", "64,16,3,3", "padding=1, groups=4", "y = relu(c)"),
          true),
      Joined(
          "of_images",
          Conv("2,64,7,7", "64,16,3,3", "padding=1, groups=4", "y = relu(c)"),
          true),
      Joined("dilated",
             Conv("1,32,18,16", "16,8,3,3", "padding=3, dilation=3, groups=4",
                  "y = gelu(c)"),
             true),
      Joined("parts",
             Conv("1,16,24,20", "16,4,7,7", "stride=2, padding=3, groups=4",
                  "y = relu(c)"),
             true),
      // What follows: statistics of groups that are not the convolution's, a
      // pooling, a reduction over images, a tensor read beside the sums.
      Joined("moments",
             Conv("1,64,16,16", "64,8,3,3", "padding=1, groups=8",
                  "n = group_norm(c, num_groups=4)\ny = relu(n)", "f16")),
      Joined("windows",
             Conv("1,32,16,16", "32,8,3,3", "padding=1, groups=4",
                  "g = gelu(c)\ny = max_pool2d(g, kernel_size=2)", "f16")),
      // Tiles that begin before the output.
      Tuned(Joined("windows_past_edges",
                   Conv("3,8,38,72", "48,4,3,3",
                        "stride=[3,2], padding=[0,1], groups=2",
                        "y = max_pool2d(c, kernel_size=3, stride=2, padding=1)",
                        "f16")),
            {.conv = 1}),
      Joined("images", Conv("2,64,8,8", "64,8,3,3", "padding=1, groups=8",
                            "r = relu(c)\ny = mean(r, dim=[2,3])", "f16")),
      Joined("beside", Conv("1,64,16,16", "64,8,3,3", "padding=1, groups=8",
                            "a = add(c, x)\ny = relu(a)", "f16")),
  };
}

}  // namespace kiln::ptx
