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
  return {lost, zeros, images};
}

}  // namespace kiln::ptx
