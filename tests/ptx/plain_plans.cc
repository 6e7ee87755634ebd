#include "tests/ptx/plain_plans.h"

#include "tests/ptx/conv_plan_text.h"

namespace kiln::ptx {

std::vector<TemplatePlan> PlainPlans() {
  return {
      // What a norm of something else has for a channel is another in each
      // image that a block computes.
      {"conv_beside_a_norm", "conv_wgmma.cu",
       "input x: f16[24,16,8,8]\ninput y: f16[24,64,8,8]\n"
       "param w: f16[64,16,1,1]\nz = group_norm(y, num_groups=4)\n"
       "c = conv2d(x, w)\nr = add(c, z)\noutput r\n",
       "sm_90a/1"},
      {"depthwise", "depthwise_conv2d.cu",
       Conv("2,32,20,20", "32,1,3,3", "padding=1, groups=32",
            "y = hardswish(c)")},
      // Tiles of several rows, for which few multiprocessors have the work.
      {"depthwise_tall", "depthwise_conv2d.cu",
       Conv("8,32,15,20", "32,1,5,5", "padding=4, dilation=2, groups=32",
            "y = silu(c)"),
       "sm_90a/1"},
      {"depthwise_long_rows", "depthwise_conv2d.cu",
       Conv("2,6,1,120", "6,1,1,43", "padding=[0,21], groups=6", "y = silu(c)",
            "f16"),
       "sm_90a/1"},
      {"depthwise_pairs", "depthwise_conv2d.cu",
       Conv("8,24,14,14", "48,1,5,3",
            "padding=[2,1], dilation=[1,3], groups=24", "y = relu(c)", "f16"),
       "sm_90a/1"},
      // Columns that rows are no multiple of, and such that are no vector.
      {"depthwise_beyond_rows", "depthwise_conv2d.cu",
       Conv("2,16,22,31", "16,1,7,7", "padding=3, groups=16",
            "r = add(c, x)\ny = silu(r)", "bf16"),
       "sm_90a/1"},
      {"depthwise_pairs_beyond_rows", "depthwise_conv2d.cu",
       Conv("2,16,22,50", "16,1,7,7", "padding=3, groups=16", "y = gelu(c)",
            "f16"),
       "sm_90a/1"},
      {"depthwise_threes", "depthwise_conv2d.cu",
       Conv("2,16,22,99", "16,1,3,3", "padding=1, groups=16", "y = relu(c)"),
       "sm_90a/1"},
      // One row of the filter at a time.
      {"depthwise_by_rows", "depthwise_conv2d.cu",
       Conv("2,8,17,20", "8,1,13,11", "padding=[6,4], stride=[2,1], groups=8",
            "y = gelu(c)"),
       "sm_90a/1"},
      // Strides of a filter's size.
      {"depthwise_patches", "depthwise_conv2d.cu",
       Conv("2,6,30,38", "30,1,7,7", "stride=7, groups=6", "y = silu(c)"),
       "sm_90a/1"},
      // Walks down the image: whole, by parts of it, of rows that are narrower
      // or wider than the input's, with rows of the output that no input row
      // completes, and with a block for each few planes.
      {"depthwise_walk", "depthwise_conv2d.cu",
       Conv("8,32,15,20", "32,1,7,7", "padding=3, groups=32", "y = silu(c)"),
       "sm_90a/1"},
      {"depthwise_walk_parts", "depthwise_conv2d.cu",
       Conv("2,16,61,16", "16,1,7,7", "padding=3, groups=16",
            "r = add(c, x)\ny = relu(r)", "bf16"),
       "sm_90a/2"},
      {"depthwise_walk_pairs", "depthwise_conv2d.cu",
       Conv("2,24,40,18", "48,1,5,5", "padding=[2,0], groups=24",
            "y = relu(c)"),
       "sm_90a/1"},
      {"depthwise_walk_below", "depthwise_conv2d.cu",
       Conv("16,24,5,16", "24,1,5,5", "padding=4, groups=24", "y = gelu(c)",
            "f16"),
       "sm_90a/1"},
      // Few results of one tap: of pairs of pixels, with a block that has not
      // as many; of single ones, with channels left over; in slices, of which
      // one has a chunk more than others; of 16 bits; of many results.
      {"narrow", "narrow_conv2d.cu",
       Conv("3,16,20,34", "5,16,1,1", "", "y = sigmoid(c)")},
      {"narrow_single_pixels", "narrow_conv2d.cu",
       Conv("2,37,9,11", "3,37,1,1", "", "y = gelu(c)"), "sm_90a/1"},
      {"narrow_slices", "narrow_conv2d.cu",
       Conv("2,44,10,13", "8,44,1,1", "", "y = silu(c)")},
      {"narrow_chunks_of_four", "narrow_conv2d.cu",
       Conv("4,24,32,32", "8,24,1,1", "", "y = tanh(c)"), "sm_90a/1"},
      {"narrow_f16", "narrow_conv2d.cu",
       Conv("2,40,12,18", "4,40,1,1", "", "y = relu(c)", "f16")},
      {"narrow_beside", "narrow_conv2d.cu",
       "input x: bf16[2,16,15,18]\nparam w: bf16[3,16,1,1]\n"
       "input z: bf16[2,3,15,18]\nparam s: bf16[3,1,1]\nc = conv2d(x, w)\n"
       "m = mul(c, s)\ny = add(m, z)\noutput y\n"},
      {"narrow_many", "narrow_conv2d.cu",
       Conv("2,16,16,18", "12,16,1,1", "", "y = hardswish(c)")},
      {"narrow_one_channel", "narrow_conv2d.cu",
       Conv("2,1,16,18", "6,1,1,1", "", "y = relu(c)")},
      {"narrow_softmax", "narrow_conv2d.cu",
       Conv("2,64,16,18", "4,64,1,1", "", "y = softmax(c, dim=1)")},
      // Few results of windows: of two rows, of which the last strip has one;
      // beyond an image's ends by more than a vector; of 16 bits, without
      // padding; a slice for some channels; of signals, with a last block that
      // lacks places, and with a bias in slices.
      {"windows", "narrow_windows.cu",
       Conv("2,4,9,16", "3,4,3,3", "padding=1", "y = tanh(c)"), "sm_90a/1"},
      {"windows_far", "narrow_windows.cu",
       Conv("1,3,11,20", "1,3,3,5", "padding=[6,4], dilation=[3,2]",
            "y = relu(c)")},
      {"windows_f16", "narrow_windows.cu",
       Conv("2,6,11,20", "2,6,5,5", "", "y = silu(c)", "f16"), "sm_90a/1"},
      {"windows_slices", "narrow_windows.cu",
       Conv("1,16,8,12", "4,16,2,3", "padding=1", "y = gelu(c)")},
      {"windows_signal", "narrow_windows.cu",
       Conv("3,3,1,364", "2,3,1,7", "padding=[0,6], dilation=[1,2]",
            "y = tanh(c)")},
      {"windows_bias", "narrow_windows.cu",
       "input x: f32[1,8,7,16]\nparam w: f32[3,8,3,3]\nparam b: f32[3]\n"
       "c = conv2d(x, w, b, padding=1)\ny = relu(c)\noutput y\n"},
      {"windows_beside", "narrow_windows.cu",
       "input x: bf16[2,2,8,16]\nparam w: bf16[1,2,7,7]\n"
       "input z: bf16[2,4,8,16]\nc = conv2d(x, w, padding=3)\n"
       "s = sigmoid(c)\ny = mul(z, s)\noutput y\n"},
      // Few channels: with a stride, and of several rows side by side.
      {"stem", "stem_conv2d.cu",
       Conv("2,3,22,32", "24,3,3,3", "stride=2, padding=1", "y = silu(c)",
            "f16"),
       "sm_90a/1"},
      {"stem_one_channel", "stem_conv2d.cu",
       Conv("2,1,20,24", "40,1,4,3", "padding=1", "y = relu(c)", "bf16"),
       "sm_90a/1"},
      // Few results of 16 bits, in the turn of which chunks come.
      {"head", "head_conv2d.cu",
       Conv("2,40,18,40", "3,40,3,3", "padding=1", "y = tanh(c)", "f16"),
       "sm_90a/1"},
      // A linear layer: of several chunks and tiles, and shared by a cluster.
      {"linear", "linear.cu",
       Conv("200,136,1,1", "140,136,1,1", "", "y = gelu(c)", "f16")},
      {"linear_shared", "linear.cu",
       Conv("72,1100,1,1", "100,1100,1,1", "", "y = silu(c)", "bf16")},
      // What stands in front of windows that overlap is not in the padding.
      {"pool_overlapping_prologue", "pool2d.cu",
       "input x: f32[2,3,9,11]\na = exp(x)\n"
       "y = avg_pool2d(a, kernel_size=3, stride=1, padding=1)\noutput y\n"},
      {"columns_of_six_steps", "reduce.cu",
       "input x: f32[3,48,5,5]\ny = mean(x, dim=1)\noutput y\n"},
      {"columns_with_a_rest", "reduce.cu",
       "input x: bf16[2,45,7,4]\na = abs(x)\ny = logsumexp(a, dim=1)\n"
       "output y\n"},
      {"pointwise", "pointwise.cu",
       "input x: f16[2,3,17,19]\na = gelu(x)\ny = mul(a, x)\noutput y\n"},
      {"pointwise_channels", "pointwise.cu",
       "input x: f32[32,8,23,23]\nparam s: f32[8,1,1]\n"
       "m = mul(x, s)\ny = relu(m)\noutput y\n"},
      {"pool_of_one_row", "pool2d.cu",
       "input x: f32[8,32,37,37]\n"
       "y = avg_pool2d(x, kernel_size=[1,3], stride=1, padding=[0,1])\n"
       "output y\n"},
      {"pool_columns", "pool_columns.cu",
       "input x: f32[2,3,25,61]\n"
       "y = avg_pool2d(x, kernel_size=7, stride=3, padding=3)\noutput y\n"},
      // Ops with a constant that makes NaNs, or none, of infinities and zeros.
      {"pointwise_softplus_step", "pointwise.cu",
       "input x: f32[4,6,5,5]\ny = softplus(x, beta=inf)\noutput y\n"},
      {"pointwise_softplus_constant", "pointwise.cu",
       "input x: f32[4,6,5,5]\ny = softplus(x, beta=0, threshold=-1)\n"
       "output y\n"},
      // Windows of which nearly all is padding.
      {"pool_columns_padded", "pool_columns.cu",
       "input x: f32[2,3,25,31]\n"
       "y = max_pool2d(x, kernel_size=[2147483,9], stride=1, "
       "padding=[1073741,4])\noutput y\n"},
      {"pool_padded", "pool2d.cu",
       "input x: f32[1,1,3,3]\n"
       "y = max_pool2d(x, kernel_size=[2147483647,1], "
       "padding=[1073741823,0])\noutput y\n"},
      {"pool", "pool2d.cu",
       "input x: f32[2,8,21,23]\n"
       "y = avg_pool2d(x, kernel_size=3, stride=2, padding=1)\noutput y\n"},
      // Several windows below each other, the last fewer.
      {"pool_tall", "pool2d.cu",
       "input x: f32[4,150,37,35]\n"
       "y = avg_pool2d(x, kernel_size=3, stride=1, padding=1)\noutput y\n"},
      {"pool_tall_maxima", "pool2d.cu",
       "input x: f16[4,300,51,47]\nr = relu(x)\n"
       "p = max_pool2d(r, kernel_size=2, stride=2)\ny = silu(p)\n"
       "output y\n"},
      {"pool_fours", "pool2d.cu",
       "input x: f32[4,250,48,48]\n"
       "y = avg_pool2d(x, kernel_size=2, stride=2)\noutput y\n"},
      {"pool_fours_padded", "pool2d.cu",
       "input x: bf16[4,250,46,48]\n"
       "y = max_pool2d(x, kernel_size=3, stride=2, padding=1)\noutput y\n"},
      {"reduce_rows", "reduce.cu",
       "input x: f32[40,3000]\ny = logsumexp(x, dim=1)\noutput y\n"},
      {"reduce_all", "reduce.cu",
       "input x: f32[700000]\ny = sum(x)\noutput y\n"},
      // The differences are computed by each kernel that needs them.
      // In 16 parts of whole accesses, where they are shared by so many blocks.
      {"reduce_whole_parts", "reduce.cu",
       "input x: f32[2,2,128,256]\ninput z: f32[2,2,128,256]\nd = sub(x, z)\n"
       "s = mul(d, d)\ny = mean(s)\noutput y\n",
       "sm_90a/8"},
      Tuned({"reduce_channels_twice", "reduce.cu",
             "input x: f16[4,6,28,28]\nm = mean(x, dim=[0,2,3], keepdim=true)\n"
             "d = sub(x, m)\nq = mul(d, d)\n"
             "v = mean(q, dim=[0,2,3], keepdim=true)\ne = add(v, 1e-5)\n"
             "s = sqrt(e)\ny = div(d, s)\noutput y\n"},
            {.rows = 4}),
      {"reduce_columns", "reduce.cu",
       "input x: f32[900,257]\ny = mean(x, dim=0)\noutput y\n"},
  };
}

}  // namespace kiln::ptx
