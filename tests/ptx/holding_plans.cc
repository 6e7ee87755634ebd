#include "tests/ptx/holding_plans.h"

#include "tests/ptx/conv_plan_text.h"

namespace kiln::ptx {

std::vector<TemplatePlan> HoldingPlans() {
  const std::string file = "conv_wgmma.cu";
  return {
      {"conv_holds",
       file,
       "grade tf32\n" +
           Transpose("3,64,24,60", "64,64,3,3", "",
                     "g = gelu(c)\ny = group_norm(g, num_groups=8)"),
       "sm_90a/4",
       false,
       {1},
       {1},
       {1, 1e6}},
      {"conv_holds_f16", file,
       Conv("5,64,20,30", "64,64,3,3", "padding=1",
            "t = tanh(c)\nn = group_norm(t, num_groups=16)\ny = silu(n)",
            "f16"),
       "sm_90a/6"},
      {"conv_holds_stride", file,
       "grade tf32\n" + Conv("3,48,41,44", "128,48,3,3", "stride=2, padding=1",
                             "n = group_norm(c, num_groups=1)\ny = sigmoid(n)"),
       "sm_90a/8"},
      // More groups than warps, which merge several states at once; of a block
      // that lacks channels.
      {"conv_holds_channels", file,
       Conv("6,16,28,28", "128,16,3,3", "padding=1",
            "n = group_norm(c, num_groups=128)\ny = relu(n)", "f16"),
       "sm_90a/8"},
      {"conv_holds_100_channels", file,
       Conv("6,32,20,32", "100,32,3,3", "padding=1",
            "n = group_norm(c, num_groups=100)\ny = relu(n)", "f16"),
       "sm_90a/8"},
      {"conv_holds_one_chunk", file,
       "grade tf32\n" + Transpose("3,64,20,40", "64,64,3,3", "",
                                  "y = group_norm(c, num_groups=32)"),
       "sm_90a/6"},
      // What channels have in common before the norm is another in each image.
      {"conv_holds_embedding", file,
       "grade tf32\ninput e: f32[4,64,1,1]\n" +
           Conv("4,64,20,30", "64,64,3,3", "padding=1",
                "h = add(c, e)\ny = group_norm(h, num_groups=8)"),
       "sm_90a/2"},
      // Groups of channels that begin in one block and end in the next, in
      // blocks of one and of two parts of pixels, and of windows; a group of
      // fewer channels than the block has.
      {"conv_holds_cut_groups", file,
       Conv("3,64,8,16", "240,64,3,3", "padding=1",
            "n = group_norm(c, num_groups=12)\ny = relu(n)", "f16"),
       "sm_90a/5"},
      {"conv_holds_cut_groups_f32", file,
       Conv("4,64,8,16", "160,64,3,3", "padding=1",
            "n = group_norm(c, num_groups=8)\ny = relu(n)"),
       "sm_90a/3"},
      {"conv_holds_cut_groups_thrice", file,
       Conv("3,64,6,14", "320,64,3,3", "padding=1",
            "n = group_norm(c, num_groups=2)\ny = relu(n)", "f16"),
       "sm_90a/5"},
      {"conv_holds_windows_cut_groups", file,
       Conv("6,8,36,40", "160,8,3,3", "padding=1",
            "n = group_norm(c, num_groups=16)\nr = relu(n)\n"
            "y = max_pool2d(r, kernel_size=2)"),
       "sm_90a/20"},
      {"conv_holds_96_outputs", file,
       Conv("3,48,16,16", "96,48,1,1", "", "y = group_norm(c, num_groups=1)",
            "bf16"),
       "sm_90a/2"},
      // Windows, of strips of tiles: all of a block; of several chunks; wide
      // and low, of fewer channels than lanes have; with sums of chunks.
      {"conv_holds_windows", file,
       Conv("5,8,36,60", "64,8,3,3", "",
            "n = group_norm(c, num_groups=16)\nr = relu(n)\n"
            "y = max_pool2d(r, kernel_size=4)"),
       "sm_90a/2"},
      {"conv_holds_windows_means", file,
       "grade tf32\n" + Conv("7,32,24,40", "128,32,3,3", "padding=1",
                             "n = group_norm(c, num_groups=1)\n"
                             "y = avg_pool2d(n, kernel_size=2)"),
       "sm_90a/2"},
      // Which extreme counts is another in each image.
      {"conv_holds_windows_signs", file,
       "input s: f32[3,64,1,1]\n" +
           Conv("3,8,36,40", "64,8,3,3", "padding=1",
                "n = group_norm(c, num_groups=8)\nm = mul(n, s)\n"
                "y = max_pool2d(m, kernel_size=2)"),
       "sm_90a/1"},
      {"conv_holds_windows_42_outputs", file,
       Conv("5,8,36,42", "42,8,3,3", "padding=1",
            "t = tanh(c)\nn = group_norm(t, num_groups=42)\n"
            "y = max_pool2d(n, kernel_size=[2,8])"),
       "sm_90a/3"},
      // Nothing is held, and blocks have parts of groups: whose pixels are
      // rows; whose channels are, of values and of what is computed of them.
      {"conv_cuts_groups_pixels", file,
       Conv("2,32,24,24", "160,32,3,3", "padding=1",
            "n = group_norm(c, num_groups=16)\ny = add(n, c)"),
       "sm_90a/4"},
      {"conv_cuts_groups_channels", file,
       Conv("3,64,16,40", "320,64,3,3", "padding=1",
            "y = group_norm(c, num_groups=16)"),
       "sm_90a/8"},
      {"conv_cuts_groups_channels_thrice", file,
       Conv("3,64,12,20", "320,64,3,3", "padding=1",
            "n = group_norm(c, num_groups=2)\ny = add(n, c)", "f16"),
       "sm_90a/8"},
      // Merged by the blocks that need them; finished by warps of other blocks;
      // with a part of two images in each block.
      {"conv_cuts_groups_merged", file,
       Conv("2,32,16,16", "240,32,1,1", "",
            "n = group_norm(c, num_groups=12)\ny = add(n, c)", "f16"),
       "sm_90a/8"},
      {"conv_cuts_groups_finish", file,
       Conv("12,64,20,20", "240,64,3,3", "padding=1",
            "n = group_norm(c, num_groups=12)\ny = add(n, c)"),
       "sm_90a/4"},
      {"conv_cuts_groups_images", file,
       Conv("34,256,6,6", "320,256,3,3", "padding=1",
            "n = group_norm(c, num_groups=16)\ny = add(n, c)", "f16"),
       "sm_90a/8"},
      // Nothing is held, and windows go by way of shared memory.
      {"conv_keeps_windows", file,
       Conv("1,8,98,130", "64,8,3,3", "",
            "n = group_norm(c, num_groups=16)\nr = relu(n)\n"
            "y = max_pool2d(r, kernel_size=2)"),
       "sm_90a/132"},
      {"conv_keeps_windows_means", file,
       Conv("1,8,97,131", "64,8,3,3", "padding=1",
            "n = group_norm(c, num_groups=4)\n"
            "y = avg_pool2d(n, kernel_size=[4,2])"),
       "sm_90a/132"},
      {"conv_holds_windows_chunks", file,
       Conv("3,64,24,40", "64,64,3,3", "padding=1",
            "n = group_norm(c, num_groups=8)\nr = relu(n)\n"
            "y = max_pool2d(r, kernel_size=2)"),
       "sm_90a/2"},
      // The last block lacks channels of those that lanes store together.
      {"conv_holds_42_outputs", file,
       Conv("3,64,30,16", "42,64,3,3", "padding=1",
            "y = group_norm(c, num_groups=42)", "f16"),
       "sm_90a/2"},
  };
}

}  // namespace kiln::ptx
