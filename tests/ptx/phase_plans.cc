#include "tests/ptx/phase_plans.h"

#include "tests/ptx/conv_plan_text.h"

namespace kiln::ptx {
namespace {

// So small that it would not pay.
TemplatePlan WithJoinedImages(const std::string& name,
                              const std::string& text) {
  return Tuned({name, "join.cu", text, "sm_90a/4", true}, {.images = 1});
}
TemplatePlan WithMosaic(const std::string& name, const std::string& text) {
  return Tuned({name, "mosaic.cu", text, "sm_90a/4", true}, {.images = 1});
}

}  // namespace

std::vector<TemplatePlan> PhasePlans() {
  const std::string file = "conv_wgmma.cu";
  const std::string target = "sm_90a/4";
  return {
      {"transpose_k3_s2", file,
       Transpose("2,24,14,17", "24,32,3,3",
                 "stride=2, padding=1, output_padding=1",
                 "y = group_norm(c, num_groups=4)"),
       target, true},
      {"transpose_k5_s3_by_k3_s2", file,
       Transpose("1,40,9,11", "40,24,5,3", "stride=[3,2], padding=[2,0]",
                 "y = gelu(c)"),
       target, true},
      {"transpose_k3_s2_bf16", file,
       Transpose("2,64,9,12", "64,40,3,3", "stride=2, padding=1", "y = relu(c)",
                 "bf16"),
       target, true},
      {"transpose_k2_s3", file,
       Transpose("2,24,10,12", "24,40,2,2", "stride=3, padding=1",
                 "y = relu(c)"),
       target, true},
      {"transpose_k2_s3_f16", file,
       Transpose("2,64,9,16", "64,64,2,2",
                 "stride=3, padding=1, output_padding=1",
                 "n = group_norm(c, num_groups=8)\ny = silu(n)", "f16"),
       target, true},
      {"transpose_k1_s2", file,
       Transpose("2,24,10,12", "24,40,1,1", "stride=2", "y = tanh(c)"), target,
       true},
      {"transpose_k2_by_3_s3_by_2_bf16", file,
       Transpose("1,160,13,7", "160,72,2,3", "stride=[3,2], padding=1",
                 "y = mean(c, dim=[2,3])", "bf16"),
       target, true},
      {"transpose_merged_k1_by_3_s2", file,
       Transpose("2,64,12,30", "64,64,1,3", "stride=2", "y = gelu(c)"), target,
       true},
      {"transpose_merged_k3_s2", file,
       Transpose("2,64,12,30", "64,64,3,3",
                 "stride=2, padding=1, output_padding=1", "y = gelu(c)"),
       target, true},
      {"transpose_merged_odd_width", file,
       Transpose("2,32,9,27", "32,64,3,3", "stride=2",
                 "g = gelu(c)\ny = group_norm(g, num_groups=8)"),
       target, true},
      {"transpose_k4_s1_by_s2_bf16", file,
       "input z: bf16[2,64,19,46]\n" + Transpose("2,32,16,23", "32,64,4,4",
                                                 "stride=[1,2], padding=[0,1]",
                                                 "y = add(c, z)", "bf16"),
       target, true},
      {"transpose_merged_residual", file,
       "input z: bf16[4,64,17,62]\n" + Transpose("4,32,16,31", "32,64,2,2",
                                                 "stride=[1,2]",
                                                 "y = add(c, z)", "bf16"),
       target, true},
      {"conv_beside_phases_of_lines", file,
       "input z: f16[2,128,24,56]\n" +
           Transpose("2,64,12,28", "64,128,2,2", "stride=2",
                     "a = add(c, z)\ny = relu(a)", "f16"),
       target, true},
      {"transpose_merged_pixel_rows", file,
       Transpose("2,24,11,19", "24,12,4,4", "stride=2, padding=1",
                 "y = silu(c)"),
       target, true},
      {"transpose_merged_part_of_a_chunk", file,
       Transpose("2,160,9,16", "160,64,2,2", "stride=2", "y = relu(c)"), target,
       true},
      {"transpose_s1_by_s2_pooled", "conv_mma.cu",
       Transpose("2,16,12,13", "16,32,3,3", "stride=[1,2], padding=1",
                 "y = max_pool2d(c, kernel_size=[2,1])"),
       target, true},
      {"conv_interleaved", file,
       Conv("2,40,37,24", "48,40,3,3", "padding=6, dilation=6",
            "n = group_norm(c, num_groups=4)\ny = relu(n)"),
       target, true},
      {"transpose_interleaved", file,
       Transpose("2,24,11,18", "24,40,3,2", "padding=[1,0], dilation=[3,1]",
                 "y = relu(c)"),
       target, true},
      {"conv_interleaved_f16", file,
       Conv("1,64,37,32", "32,64,3,2", "padding=[12,1], dilation=[12,1]",
            "y = mean(c, dim=[2,3])", "f16"),
       target, true},
      {"conv_of_patches", "unfold.cu",
       "input z: f32[2,3,40,37]\nparam w: f32[72,3,8,8]\n"
       "x = mul(z, 0.5)\nc = conv2d(x, w, stride=8)\n"
       "y = group_norm(c, num_groups=1)\noutput y\n",
       target, true},
      {"conv_of_patches_f16", "unfold.cu",
       "input x: f16[2,3,40,48]\nparam w: f16[72,3,8,8]\n"
       "c = conv2d(x, w, stride=8)\ny = relu(c)\noutput y\n",
       target, true},
      {"conv_of_single_pixels", "turn.cu",
       "input z: f32[133,24,3,2]\nparam w: f16[140,24,3,2]\n"
       "x = mul(z, 0.5)\nc = conv2d(x, w)\ny = gelu(c)\noutput y\n",
       target, true},
      {"conv_of_perceptrons", "turn.cu",
       "input x: f32[144,40,1,1]\nparam u: f16[136,40,1,1]\n"
       "param s: f32[136,1,1]\nparam w: f16[40,136,1,1]\n"
       "a = conv2d(x, u)\nb = mul(a, s)\nh = gelu(b)\nc = conv2d(h, w)\n"
       "y = add(c, x)\noutput y\n",
       target, true},
      {"conv_of_computed_weights", "turn.cu",
       "input z: f32[128,64,1,1]\ninput x: f16[256,200,1,1]\n"
       "param p: f16[200,64,1,1]\nv = conv2d(z, p)\nw = tanh(v)\n"
       "c = conv2d(x, w)\ny = relu(c)\noutput y\noutput w\n",
       target, true},
      {"transpose_of_single_pixels", "turn.cu",
       "input x: f16[40,40,1,1]\nparam w: f16[40,72,4,3]\n"
       "param b: f16[72]\nc = conv_transpose2d(x, w, b, stride=2)\n"
       "y = relu(c)\noutput y\n",
       target, true},
      WithMosaic("conv_of_mosaic",
                 "input x: f16[19,40,2,2]\nparam w: f16[72,40,3,3]\n"
                 "param b: f16[72]\ninput z: f16[19,72,2,2]\nr = relu(x)\n"
                 "c = conv2d(r, w, b, padding=1)\na = add(c, z)\n"
                 "y = gelu(a)\noutput y\n"),
      WithMosaic("conv_of_mosaic_rounded",
                 "input x: f16[21,9,3,3]\nparam w: f16[40,9,3,3]\n"
                 "param m: f16[40]\nparam v: f16[40]\n"
                 "c = conv2d(x, w, padding=1)\na = abs(v)\n"
                 "n = batch_norm(c, m, a)\ny = silu(n)\noutput y\n"),
      WithMosaic("conv_of_mosaic_of_wide_results",
                 "input x: f16[35,40,2,2]\nparam w: f16[40,40,4,4]\n"
                 "y = conv2d(x, w, stride=4, padding=2)\noutput y\n"),
      WithMosaic("conv_of_mosaic_s23_d2",
                 "input x: bf16[21,48,7,5]\nparam w: bf16[40,48,5,3]\n"
                 "c = conv2d(x, w, stride=[2,3], padding=[2,0], "
                 "dilation=[1,2])\ny = softmax(c, dim=1)\noutput y\n"),
      WithMosaic("transpose_of_mosaic",
                 Transpose("19,24,4,3", "24,40,4,4",
                           "stride=2, padding=1, output_padding=1",
                           "y = group_norm(c, num_groups=4)")),
      WithJoinedImages(
          "conv_of_joined_images",
          "input x: f16[8,40,5,7]\nparam u: f16[72,40,1,1]\n"
          "param v: f16[40,72,1,1]\na = conv2d(x, u)\ng = gelu(a)\n"
          "c = conv2d(g, v)\ny = add(c, x)\noutput y\n"),
      WithJoinedImages(
          "conv_between_joined_images",
          "input x: bf16[4,48,7,7]\nparam u: bf16[24,48,1,1]\n"
          "param v: bf16[24,24,3,3]\nparam w: bf16[48,24,1,1]\n"
          "a = conv2d(x, u)\nb = relu(a)\nc = conv2d(b, v, padding=1)\n"
          "d = relu(c)\ne = conv2d(d, w)\nf = add(e, x)\ny = relu(f)\n"
          "output y\n"),
      WithJoinedImages("conv_of_some_joined_images",
                       "input x: f16[16,32,1,9]\nparam u: f16[64,32,1,1]\n"
                       "param v: f16[24,64,1,1]\na = conv2d(x, u)\n"
                       "y = conv2d(a, v)\noutput a: f16\noutput y: f16\n"),
      {"conv_of_rounded", file,
       "input x: f16[2,32,14,14]\nparam w: f16[32,32,3,3]\n"
       "n = group_norm(x, num_groups=4)\ns = silu(n)\n"
       "c = conv2d(s, w, padding=1)\nt = relu(c)\n"
       "d = conv2d(t, w, padding=1)\ny = add(d, t)\noutput y\n"
       "output s: f32\n",
       target, true},
  };
}

}  // namespace kiln::ptx
