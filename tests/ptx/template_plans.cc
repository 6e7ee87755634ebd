#include "tests/ptx/template_plans.h"

#include "fmt/format.h"
#include "tests/ptx/apart_plans.h"
#include "tests/ptx/conv_plan_text.h"
#include "tests/ptx/correlation_plans.h"
#include "tests/ptx/eights_plans.h"
#include "tests/ptx/holding_plans.h"
#include "tests/ptx/joined_plans.h"
#include "tests/ptx/long_sum_plans.h"
#include "tests/ptx/phase_plans.h"
#include "tests/ptx/plain_plans.h"
#include "tests/ptx/row_plans.h"
#include "tests/ptx/scale_plans.h"
#include "tests/ptx/signal_plans.h"

namespace kiln::ptx {
namespace {

// Statistics and what follows them.
std::vector<std::pair<std::string, std::string>> Moments() {
  const std::string pooled = "n = group_norm(c, num_groups=16)\n";
  return {
      {"conv_moments",
       Conv("2,8,20,30", "64,8,3,3", "", "y = group_norm(c, num_groups=16)")},
      {"conv_gelu_moments",
       Conv("2,64,20,30", "64,64,3,3", "padding=1",
            "g = gelu(c)\ny = group_norm(g, num_groups=8)")},
      {"conv_f16_moments",
       Conv("2,64,28,28", "64,64,3,3", "padding=1",
            "n = group_norm(c, num_groups=8)\ny = relu(n)", "f16")},
      // What they are taken of is stored, in rows that are no whole sectors.
      {"conv_odd_moments",
       Conv("2,24,17,37", "40,24,3,3", "padding=1",
            "g = gelu(c)\ny = group_norm(g, num_groups=8)")},
      {"conv_odd_moments_output",
       Conv("2,24,17,37", "40,24,3,3", "padding=1",
            "g = gelu(c)\ny = group_norm(g, num_groups=8)\noutput c")},
      {"conv_pool_4", "param s: f32[64,1,1]\n" +
                          Conv("2,8,34,34", "64,8,3,3", "",
                               pooled + "m = mul(n, s)\n"
                                        "y = max_pool2d(m, kernel_size=4)")},
      {"conv_pool_3", Conv("2,8,32,32", "64,8,3,3", "",
                           pooled + "y = max_pool2d(n, kernel_size=3)")},
      {"conv_pool_overlapping_norm",
       "param s: f32[64,1,1]\n" +
           Conv("2,8,37,45", "64,8,3,3", "padding=1",
                pooled + "m = mul(n, s)\nr = relu(m)\n"
                         "y = max_pool2d(r, kernel_size=3, stride=2, "
                         "padding=1)")},
      {"conv_mean_pool_overlapping_norm",
       Conv("2,8,38,44", "64,8,3,3", "",
            pooled + "y = avg_pool2d(n, kernel_size=[3,4], stride=[2,3])")},
      {"conv_mean_pool_4",
       "param s: f32[64,1,1]\n" +
           Conv("2,8,34,34", "64,8,3,3", "",
                pooled + "m = sub(s, n)\n"
                         "y = avg_pool2d(m, kernel_size=4)")},
      {"conv_mean_pool_3", Conv("2,8,32,32", "64,8,3,3", "",
                                pooled + "y = avg_pool2d(n, kernel_size=3)")},
      {"conv_stride_2", Conv("2,32,30,30", "64,32,3,3", "stride=2, padding=1",
                             "y = group_norm(c, num_groups=8)")},
      {"conv_grouped", Conv("2,64,20,20", "64,16,3,3", "padding=1, groups=4",
                            "y = group_norm(c, num_groups=8)")},
      {"transpose_k3",
       Transpose("2,64,16,16", "64,64,3,3", "",
                 "g = gelu(c)\ny = group_norm(g, num_groups=8)")},
      {"transpose_k4_s2",
       Transpose("2,32,14,14", "32,64,4,4", "stride=2, padding=1",
                 "y = group_norm(c, num_groups=8)")},
  };
}

// Results some 10^-33 times as large as usual, of which the scales of both
// operands undone are no normal number.
std::string Tiny(double of_input, double of_weights) {
  return fmt::format(
      "input x: f32[1,64,8,64]\nparam v: f32[64,64,3,3]\na = mul(x, {})\n"
      "w = mul(v, {})\nc = conv2d(a, w, padding=1)\ny = relu(c)\noutput y\n",
      of_input, of_weights);
}

// Without statistics: reductions, residuals, stores.
std::vector<std::pair<std::string, std::string>> Stores() {
  return {
      {"conv_bf16_k1",
       Conv("2,64,14,14", "128,64,1,1", "", "y = silu(c)", "bf16")},
      // Chunks of sixteen channels of eight.
      {"conv_half_of_a_chunk",
       Conv("2,8,19,22", "40,8,7,7", "stride=2, padding=3", "y = relu(c)")},
      {"conv_tiny_input", Tiny(1e-36, 1)},
      {"conv_tiny_both", Tiny(1e-17, 1e-17)},
      {"conv_finished_pool",
       Conv("2,8,34,34", "64,8,3,3", "",
            "r = relu(c)\ny = max_pool2d(r, kernel_size=2)")},
      {"conv_pool_overlapping",
       Conv("2,16,45,50", "40,16,3,3", "stride=2, padding=1",
            "r = relu(c)\n"
            "y = max_pool2d(r, kernel_size=3, stride=2, padding=1)")},
      {"conv_pool_overlapping_long",
       Conv("1,16,33,47", "64,16,3,3", "padding=1",
            "r = mish(c)\ns = tanh(r)\n"
            "y = max_pool2d(s, kernel_size=[4,2], stride=[3,1], "
            "ceil_mode=true)")},
      {"conv_pool_overlapping_mean",
       Conv("1,16,24,40", "64,16,1,1", "",
            "r = silu(c)\n"
            "p = avg_pool2d(r, kernel_size=3, stride=2, padding=1)\n"
            "y = neg(p)")},
      {"conv_logsumexp",
       Conv("2,8,20,66", "64,8,3,3", "",
            "n = group_norm(c, num_groups=16)\nr = add(n, c)\n"
            "y = logsumexp(r, dim=1, keepdim=true)")},
      {"conv_amax",
       Conv("2,16,20,20", "32,16,3,3", "", "y = amax(c, dim=1, keepdim=true)")},
      {"conv_mean", Conv("2,16,20,20", "32,16,3,3", "",
                         "r = relu(c)\ny = mean(r, dim=1, keepdim=true)")},
      // Of aligned rows and not; with channels in two warps; after a norm.
      {"conv_softmax",
       Conv("2,16,20,20", "32,16,3,3", "", "y = softmax(c, dim=1)")},
      {"conv_softmax_aligned", Conv("2,16,24,24", "40,16,3,3", "padding=1",
                                    "r = silu(c)\ny = softmax(r, dim=1)")},
      {"conv_softmax_wide", Conv("3,24,17,15", "130,24,1,1", "",
                                 "y = softmax(c, dim=1)\noutput c", "f16")},
      {"conv_softmax_norm",
       "param s: f32[64,1,1]\n" +
           Conv("2,8,20,35", "64,8,3,3", "",
                "n = group_norm(c, num_groups=16)\nt = tanh(n)\n"
                "h = hardswish(t)\na = add(h, c)\nm = softmax(a, dim=1)\n"
                "y = mul(m, s)")},
      // Of values whose products with log2(e) are infinite; after a norm, with
      // what that is taken of behind the softmax.
      {"conv_softmax_large", Conv("2,8,20,20", "64,8,3,3", "",
                                  "d = clamp(c, min=-1.0, max=-1.0)\n"
                                  "e = mul(d, 3e38)\n"
                                  "y = softmax(e, dim=1)")},
      {"conv_softmax_and_sum",
       Conv("2,8,20,20", "64,8,3,3", "",
            "n = group_norm(c, num_groups=16)\ns = softmax(n, dim=1)\n"
            "y = add(s, c)")},
      {"transpose_softmax",
       "input z: f32[2,40,28,28]\n" +
           Transpose("2,12,14,14", "12,40,4,4", "stride=2, padding=1",
                     "a = add(c, z)\ny = softmax(a, dim=1)")},
      {"conv_images_mean", Conv("2,16,40,40", "48,16,3,3", "",
                                "r = relu(c)\ny = mean(r, dim=[2,3])")},
      {"conv_images_amax",
       Conv("2,24,9,9", "40,24,3,3", "", "y = amax(c, dim=[2,3])")},
      {"conv_images_sum",
       Conv("4,8,40,45", "64,8,3,3", "", "t = tanh(c)\ny = sum(t, dim=[2,3])")},
      // What is reduced is an output too, or has another tensor added.
      {"conv_images_stored",
       Conv("8,8,14,14", "64,8,3,3", "",
            "t = relu(c)\ny = mean(t, dim=[2,3])\noutput t\noutput c")},
      {"conv_images_broadcast",
       "input z: f32[32,40]\n" + Conv("2,8,32,40", "64,8,3,3", "padding=1",
                                      "a = add(c, z)\ny = sum(a, dim=[2,3])")},
      {"transpose_images_amin",
       Transpose("2,24,19,22", "24,64,4,4", "stride=2, padding=1",
                 "y = amin(c, dim=[2,3])")},
      {"conv_residual",
       "input z: f32[2,64,20,20]\n" +
           Conv("2,64,20,20", "64,64,1,1", "", "a = add(c, z)\ny = relu(a)")},
      {"conv_store",
       Conv("2,16,30,30", "64,16,5,5", "padding=2", "y = relu(c)")},
      {"conv_dilated",
       Conv("2,32,24,24", "32,32,3,3", "padding=2, dilation=2", "y = relu(c)")},
      // The input in two parts, weights as they are; half a chunk at the end.
      {"conv_f32_by_f16",
       "input x: f32[2,24,20,20]\nparam w: f16[32,24,3,3]\n"
       "c = conv2d(x, w)\ny = relu(c)\noutput y\n"},
      // Chunks of an odd number of octets, more than a thread has at once.
      {"conv_40_channels",
       Conv("2,40,33,37", "64,40,3,3", "padding=1", "y = relu(c)")},
      {"conv_many_channels",
       Conv("1,256,9,9", "256,256,3,3", "padding=1", "y = relu(c)")},
  };
}

// Of few channels, units of several columns: with the last unit of a row of the
// filter beginning early, as one of its own, or as the only one.
std::vector<std::pair<std::string, std::string>> FewChannels() {
  return {
      {"conv_3_channels_k7_s2",
       Conv("2,3,40,44", "64,3,7,7", "stride=2, padding=3", "y = relu(c)")},
      {"conv_3_channels_f16",
       Conv("2,3,40,44", "64,3,7,7", "stride=2, padding=3", "y = relu(c)",
            "f16")},
      {"conv_4_channels_bf16",
       Conv("2,4,32,40", "64,4,3,3", "padding=1",
            "n = group_norm(c, num_groups=16)\ny = relu(n)", "bf16")},
      {"conv_3_channels_k4_s4",
       Conv("2,3,32,48", "96,3,4,4", "stride=4",
            "y = group_norm(c, num_groups=1)", "bf16")},
      {"conv_2_channels_dilated",
       Conv("2,2,33,41", "64,2,5,5", "padding=3, dilation=2",
            "y = sum(c, dim=[2,3])")},
      {"conv_1_channel_k9",
       Conv("2,1,33,41", "64,1,9,9", "padding=4", "y = sum(c, dim=[2,3])")},
      {"conv_4_channels",
       Conv("2,4,32,40", "64,4,3,3", "padding=1", "y = sum(c, dim=[2,3])")},
      {"transpose_3_channels",
       Transpose("2,3,20,36", "3,64,5,5", "", "y = gelu(c)")},
  };
}

// With a smaller device, blocks enough that they finish what earlier ones have
// computed, and several tiles or images to a block.
std::vector<TemplatePlan> SmallDevicePlans() {
  const std::string file = "conv_wgmma.cu";
  const std::string target = "sm_90a/16";
  const std::vector<double> bands = {1,   1,   1,   1,   1,   1,   1,   1,
                                     1,   1,   1,   1,   1e4, 1e4, 1e4, 1e4,
                                     1e4, 1e4, 1e4, 1e4, 1e4, 1e4, 1e4, 1e4};
  return {
      // Of images that two multiprocessors do not hold.
      {"conv_finish", file,
       Transpose("12,64,36,36", "64,64,3,3", "",
                 "g = gelu(c)\ny = group_norm(g, num_groups=8)"),
       "sm_90a/2", true},
      // What follows reads the convolution's input, too.
      {"conv_finish_residual", file,
       "input z: f32[66,64,14,14]\nparam w: f32[64,64,3,3]\nx = relu(z)\n"
       "c = conv2d(x, w, padding=1)\nn = group_norm(c, num_groups=8)\n"
       "y = add(n, x)\noutput y\n",
       target, true},
      {"conv_small_images",
       file,
       Conv("34,128,7,7", "96,128,3,3", "padding=1",
            "y = group_norm(c, num_groups=8)"),
       "sm_90a/4",
       false,
       {1},
       {1},
       {1, 1e6}},
      // Three fragments of rows to a warp, each with products in a loop.
      {"conv_f16_logsumexp", file,
       Conv("2,32,30,30", "64,32,3,3", "", "y = logsumexp(c, dim=1)", "f16"),
       "sm_90a/2", true},
      // Four groups that hold their turns through a part of the tail.
      {"conv_turns_held", file,
       Conv("2,8,20,128", "48,8,3,3", "",
            "n = group_norm(c, num_groups=16)\nt = tanh(n)\nr = add(t, c)\n"
            "y = logsumexp(r, dim=1)"),
       "sm_90a/2", true, bands},
      {"conv_turns_held_softmax", file,
       Conv("2,8,20,128", "64,8,3,3", "", "y = softmax(c, dim=1)"), "sm_90a/2",
       true},
      // Lines: several tiles and chunks, the last one shorter, and channels
      // that fill no block; rows of several parts; tiles that share rows.
      {"conv_lines", file,
       Conv("2,200,12,24", "72,200,1,1", "", "y = relu(c)", "f16"), "sm_90a/4",
       true},
      {"conv_lines_parts", file,
       Conv("2,48,24,64", "64,48,1,1", "", "y = silu(c)", "bf16"), target,
       true},
      {"conv_lines_reshaped", file,
       Conv("2,160,28,28", "136,160,1,1", "", "y = gelu(c)", "f16"), "sm_90a/4",
       true},
      // What ops read beside the sums, ahead of them: two tensors; channels
      // that
      // fill no block; numbers of 32 bits; both phases of a tile's columns.
      {"conv_beside", file,
       "input z: f16[2,64,20,24]\ninput s: f16[2,64,20,24]\n" +
           Conv("2,64,20,24", "64,64,3,3", "padding=1",
                "m = mul(c, s)\na = add(m, z)\ny = silu(a)", "f16"),
       "sm_90a/2", true},
      {"conv_beside_lines", file,
       "input z: bf16[2,200,24,56]\n" + Conv("2,128,24,56", "200,128,1,1", "",
                                             "a = add(c, z)\ny = relu(a)",
                                             "bf16"),
       target, true},
      {"conv_beside_f32", file,
       "input z: f32[2,64,20,28]\n" + Conv("2,64,20,28", "64,64,3,3",
                                           "padding=1",
                                           "a = add(c, z)\ny = silu(a)"),
       "sm_90a/4", true},
      {"conv_beside_phases", file,
       "input z: f16[2,128,24,60]\n" +
           Transpose("2,64,12,30", "64,128,2,2", "stride=2",
                     "a = add(c, z)\ny = relu(a)", "f16"),
       target, true},
      // Sums whose scales change within a block.
      {"conv_scales_channels", file,
       Conv("16,16,48,40", "32,16,1,1", "", "y = amax(c, dim=1)"), target, true,
       bands},
      // Loads of the next chunk go out before one is handed over.
      {"conv_loads_ahead", file,
       Conv("1,16,256,32", "32,16,3,3", "", "y = amax(c, dim=1)"), "sm_90a/1",
       true, bands},
      {"conv_scales_images", file,
       Conv("16,16,48,40", "32,16,1,1", "", "y = amax(c, dim=[2,3])"), target,
       true, bands},
  };
}

// Tiles that take rows from the one above, for as long as scales suit.
std::vector<TemplatePlan> CarryingPlans() {
  const std::string file = "conv_wgmma.cu";
  const std::string target = "sm_90a/1";
  std::vector<double> bands(19, 1.0);
  bands.insert(bands.end(), 13, 1e4);
  std::vector<double> bands_and_zeros = bands;
  bands_and_zeros.insert(bands_and_zeros.end(), 11, 0.0);
  // The second chunk needs another scale, which suits the first as well.
  std::vector<double> large_chunk(32, 100.0);
  large_chunk.insert(large_chunk.end(), 32, 300.0);
  return {
      {"conv_carries", file,
       Conv("1,16,60,37", "32,16,5,5", "padding=2", "y = relu(c)"), target,
       true, bands},
      {"conv_carries_planes", file,
       Conv("1,16,60,41", "40,16,3,3", "stride=2", "y = mean(c, dim=[2,3])"),
       target, true, bands_and_zeros},
      {"conv_carries_chunks",
       file,
       Conv("1,64,48,40", "64,64,3,3", "padding=1",
            "y = group_norm(c, num_groups=8)"),
       target,
       true,
       {1},
       large_chunk},
      // Fresh positions that leave threads without any, 94 in three rows of
      // warps, where a whole patch has 235.
      {"conv_carries_few", file,
       Transpose("2,48,38,41", "48,32,4,3", "padding=[3,1], dilation=[1,2]",
                 "t = tanh(c)\nn = group_norm(t, num_groups=16)\n"
                 "y = avg_pool2d(n, kernel_size=2)"),
       target, true},
      // Beside warps that finish earlier images.
      {"conv_carries_finish", file,
       Conv("10,32,54,38", "16,32,5,5", "padding=2",
            "n = group_norm(c, num_groups=4)\ny = relu(n)"),
       "sm_90a/4", true},
      {"conv_carries_ahead", file,
       Transpose("1,32,40,24", "32,32,3,3", "",
                 "y = group_norm(c, num_groups=8)"),
       target, true, bands_and_zeros},
  };
}

std::vector<TemplatePlan> WarpProductPlans() {
  const std::string file = "conv_mma.cu";
  return {
      {"conv_3_channels", file,
       Conv("2,3,40,40", "32,3,7,7", "stride=2, padding=3",
            "r = relu(c)\n"
            "y = max_pool2d(r, kernel_size=3, stride=2, padding=1)"),
       "sm_80/108", true},
      {"conv_patches", file,
       Conv("2,3,32,33", "48,3,4,4", "stride=4",
            "y = group_norm(c, num_groups=4)", "bf16"),
       "sm_90a/132", true},
      {"transpose_k2_s3_dilated", file,
       Transpose("1,16,14,14", "16,32,2,2", "stride=3, dilation=2",
                 "y = relu(c)"),
       "sm_90a/132", true},
      {"sm_80_moments", file,
       Conv("2,64,20,30", "64,64,3,3", "padding=1",
            "g = gelu(c)\ny = group_norm(g, num_groups=8)"),
       "sm_80/108", true},
      {"sm_80_f16", file,
       Conv("2,64,28,28", "64,64,3,3", "padding=1", "y = relu(c)", "f16"),
       "sm_80/108", true},
      {"sm_80_amax", file,
       Conv("2,16,20,20", "32,16,3,3", "", "y = amax(c, dim=1)"), "sm_80/108",
       true},
      {"sm_80_transpose", file,
       Transpose("1,32,14,14", "32,64,4,4", "stride=2, padding=1",
                 "y = relu(c)"),
       "sm_80/108", true},
  };
}

}  // namespace

std::vector<TemplatePlan> TemplatePlans() {
  std::vector<TemplatePlan> plans;
  for (const auto& list : {Moments(), Stores()}) {
    for (const auto& [name, text] : list) {
      plans.push_back({name, "conv_wgmma.cu", text, "sm_90a/132", true});
    }
  }
  // A single multiprocessor has the tensor cores of warpgroups to spare.
  for (const auto& [name, text] : FewChannels()) {
    plans.push_back({name, "conv_wgmma.cu", text, "sm_90a/1", true});
  }
  for (const std::vector<TemplatePlan>& list :
       {SmallDevicePlans(), ApartPlans(), CarryingPlans(), EightsPlans(),
        CorrelationPlans(), HoldingPlans(), JoinedPlans(), LongSumPlans(),
        PhasePlans(), WarpProductPlans(), RowPlans(), PlainPlans(),
        ScalePlans(), SignalPlans()}) {
    plans.insert(plans.end(), list.begin(), list.end());
  }
  return plans;
}

}  // namespace kiln::ptx
