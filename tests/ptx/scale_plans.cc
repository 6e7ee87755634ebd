#include "tests/ptx/scale_plans.h"

#include <string>

#include "tests/ptx/conv_plan_text.h"

namespace kiln::ptx {
namespace {

// `first` for the channels of whole stages, `second` for those of the next.
std::vector<double> ChannelFactors(double first, double second) {
  constexpr int kLargestChunk = 128;
  std::vector<double> factors(kLargestChunk, first);
  factors.resize(2 * kLargestChunk, second);
  return factors;
}

TemplatePlan PlanOf(const std::string& name, const std::string& x,
                    const std::string& w, const std::string& target) {
  return {name, "conv_wgmma.cu",
          "grade tf32\n" + Conv(x, w, "padding=1", "y = relu(c)"), target};
}

}  // namespace

std::vector<TemplatePlan> ScalePlans() {
  const std::string x = "1,256,64,32", w = "64,256,3,3";
  TemplatePlan lost = PlanOf("conv_rescales_lost", x, w, "sm_90a/1");
  lost.channel_factors = ChannelFactors(1, 1e-36);
  // Zeros leave the scale of the tile before, which may be any.
  TemplatePlan zeros = PlanOf("conv_rescales_zeros", x, w, "sm_90a/1");
  zeros.channel_factors = ChannelFactors(0, 1);
  zeros.row_factors = std::vector<double>(32, 1e28);
  zeros.row_factors.resize(64, 1e-16);
  // Each warpgroup has an image, with scales of its own.
  TemplatePlan images =
      PlanOf("conv_rescales_images", "8,256,7,7", "128,256,3,3", "sm_90a/2");
  images.channel_factors = ChannelFactors(1, 1e-36);
  images.image_factors = {1, 1e20, 1e-20};
  // Blocks that share sums have scales so far apart that their ratio is 0.
  TemplatePlan shared =
      PlanOf("conv_rescales_shared", "1,512,8,8", "64,512,3,3", "sm_90a/132");
  shared.channel_factors = std::vector<double>(64, 1e18);
  shared.channel_factors.resize(512, 1e-30);
  // Infinities meet weights that are far smaller than others of their channel.
  const TemplatePlan small = {
      "conv_small_weights", "conv_wgmma.cu",
      "input x: f32[1,64,8,8]\nparam w: f32[64,64,3,3]\n"
      "param s: f32[1,64,1,1]\nt = mul(s, 60)\ne = exp(t)\nv = mul(w, e)\n"
      "y = conv2d(x, v, padding=1)\noutput y\n",
      "sm_90a/4", true};
  // And numbers to which infinity is nearer than any of TF32.
  const TemplatePlan large = {
      "conv_largest_numbers", "conv_mma.cu",
      "input x: f32[1,16,16,16]\nparam w: f32[16,16,3,3]\n"
      "a = clamp(x, max=0x1.fffffep+127)\ny = conv2d(a, w)\noutput y\n",
      "sm_80/108", true};
  return {lost, zeros, images, shared, small, large};
}

}  // namespace kiln::ptx
