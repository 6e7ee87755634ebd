// Which kernels a plan with convolutions becomes on tensor cores.
#include "jit/compile/conv_fusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "fmt/format.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/schedule.h"
#include "jit/plan/plan_text.h"
#include "tests/jit/compile/chain_plans.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::ElementsAre;

// The symbol of each kernel's first entry.
std::vector<std::string> Symbols(const std::string& text,
                                 const Target& target) {
  const Schedule schedule = Fastest(text, target);
  std::vector<std::string> symbols;
  for (const Kernel& kernel : schedule.kernels) {
    symbols.push_back(MakeKernelSpec(schedule, kernel).entries[0].symbol);
  }
  return symbols;
}

TEST(ConvFusionTest, CheapConvolutionsAreComputedAgain) {
  for (const Target& target : {kH100, kA100}) {
    EXPECT_THAT(Symbols(kResidualChain, target),
                ElementsAre("kiln_pack_weights", "kiln_conv_statistics",
                            "kiln_conv_reduce"));
  }
}

// With a stride the input is larger than the result: reading it again takes as
// long as storing that.
TEST(ConvFusionTest, CheapConvolutionsOfLargeInputsGoThroughMemory) {
  for (const auto& [stride, second] :
       {std::pair("1", "kiln_conv"), std::pair("2", "kiln_pointwise")}) {
    EXPECT_THAT(
        Symbols(fmt::format(R"(
grade tf32
input x: f32[8,32,896,896]
param w: f32[64,32,3,3]
c = conv2d(x, w, stride={}, padding=1)
n = group_norm(c, num_groups=8)
output n
)",
                            stride),
                kH100),
        ElementsAre("kiln_pack_weights", "kiln_conv_statistics", second));
  }
}

// What a kernel reads besides the convolution's elements: tiles and costs go by
// it, and whether values can stay in registers.
TEST(ConvFusionTest, ReadsAreOfTensorsThatDifferWithinAChannel) {
  const auto reads_of = [](const std::string& op) {
    const Schedule schedule = Fastest(
        "input x: f32[8,64,56,40]\nparam w: f32[64,64,3,3]\n"
        "param g: f32[64]\ninput row: f32[40]\ninput z: f32[8,64,56,40]\n"
        "param s: f32[64,1,1]\nc = conv2d(x, w, padding=1)\nt = " +
            op + "\ny = relu(t)\noutput y\n",
        kH100);
    return schedule.kernels.back().demands.reads;
  };
  EXPECT_EQ(reads_of("batch_norm(c, g, g, g, g)"), 0);
  EXPECT_EQ(reads_of("mul(c, s)"), 0);
  EXPECT_EQ(reads_of("add(c, row)"), 1);
  EXPECT_EQ(reads_of("add(c, z)"), 1);
}

TEST(ConvFusionTest, NothingOfACheapConvolutionIsStored) {
  // Means and reciprocal deviations, and one partial state for each block.
  EXPECT_LT(Fastest(kResidualChain, kH100).workspace_bytes, 1 << 20);
}

TEST(ConvFusionTest, DearConvolutionsGoThroughMemory) {
  for (const std::string& text :
       {"grade tf32\n" + TransposedChain("[32,64,512,512]"),
        TransposedChain("[1,64,512,512]")}) {
    EXPECT_THAT(Symbols(text, kH100),
                ElementsAre("kiln_pack_weights", "kiln_conv_statistics",
                            "kiln_pointwise"));
  }
}

TEST(ConvFusionTest, ResultsThatTheChipHoldsAreNotStoredBeforeTheNorm) {
  for (const std::string& text :
       {"grade tf32\n" + TransposedChain(), TransposedChain("[16,64,56,56]")}) {
    EXPECT_THAT(Symbols(text, kH100),
                ElementsAre("kiln_pack_weights", "kiln_conv_held"));
    EXPECT_THAT(Symbols(text, kA100),
                ElementsAre("kiln_pack_weights", "kiln_conv_statistics",
                            "kiln_pointwise"));
  }
}

TEST(ConvFusionTest, PoolingMovesInFrontOfTheNorm) {
  for (const char* pooling : {"max_pool2d", "avg_pool2d"}) {
    std::string text = kPoolChain;
    text.replace(text.find("max_pool2d"), 10, pooling);
    EXPECT_THAT(Symbols(text, kA100),
                ElementsAre("kiln_pack_weights", "kiln_conv_statistics",
                            "kiln_pointwise"));
    EXPECT_THAT(Symbols(text, kH100),
                ElementsAre("kiln_pack_weights", "kiln_conv_held"));
  }
}

// Elements that several tiles have count in the statistics once.
TEST(ConvFusionTest, OverlappingPoolingMovesInFrontOfTheNorm) {
  for (const char* attributes :
       {"stride=2, padding=1", "stride=4, ceil_mode=true"}) {
    std::string text = kPoolChain;
    text.replace(text.find("kernel_size=4"), 13,
                 fmt::format("kernel_size=4, {}", attributes));
    const Schedule schedule = Fastest(text);
    EXPECT_THAT(Symbols(text, kH100),
                ElementsAre("kiln_pack_weights", "kiln_conv_statistics",
                            "kiln_pointwise"));
    EXPECT_FALSE(schedule.kernels[1].conv->channel_rows);
  }
}

TEST(ConvFusionTest, PoolingStaysBehindWhatIsNotMonotone) {
  std::string text = kPoolChain;
  text.replace(text.find("mul(norm, s)"), 12, "gelu(norm)");
  EXPECT_THAT(Symbols(text, kH100),
              ElementsAre("kiln_pack_weights", "kiln_conv_statistics",
                          "kiln_conv_pool"));
}

std::string Pooled(const std::string& conv, const std::string& attributes) {
  return fmt::format("{}r = relu(c)\ny = max_pool2d(r, {})\noutput y\n", conv,
                     attributes);
}
constexpr std::string_view kStem =
    "input x: f32[32,3,224,224]\nparam w: f32[64,3,7,7]\n"
    "c = conv2d(x, w, stride=2, padding=3)\n";

TEST(ConvFusionTest, OverlappingWindowsJoinTheConvolution) {
  const std::string conv(kStem);
  for (const Target& target : {kH100, kA100}) {
    EXPECT_THAT(
        Symbols(Pooled(conv, "kernel_size=3, stride=2, padding=1"), target),
        ElementsAre("kiln_pack_weights", "kiln_conv_pool"));
  }
  EXPECT_THAT(
      Symbols(Pooled(conv, "kernel_size=2, ceil_mode=true, padding=1"), kH100),
      ElementsAre("kiln_pack_weights", "kiln_conv_pool"));
}

// What tiles would compute again takes longer than the way through memory; or
// others read elements, of which some are in no window.
TEST(ConvFusionTest, OverlappingWindowsOfDearOrSharedElementsDoNot) {
  const auto apart =
      ElementsAre("kiln_pack_weights", "kiln_conv", "kiln_pool2d");
  EXPECT_THAT(Symbols(Pooled("input x: f32[32,64,56,56]\n"
                             "param w: f32[192,64,5,5]\n"
                             "c = conv2d(x, w, padding=2)\n",
                             "kernel_size=3, stride=2, padding=1"),
                      kH100),
              apart);
  EXPECT_THAT(
      Symbols(Pooled(std::string(kStem), "kernel_size=3, stride=2, padding=1") +
                  "output r\n",
              kH100),
      apart);
}

TEST(ConvFusionTest, AChainWithoutANormIsOneKernel) {
  EXPECT_THAT(Symbols(R"(
input x: f32[8,32,56,56]
param w: f32[48,32,3,3]
param b: f32[48]
c = conv2d(x, w, b, stride=2, padding=1)
y = silu(c)
output y
)",
                      kH100),
              ElementsAre("kiln_pack_weights", "kiln_conv"));
}

TEST(ConvFusionTest, DepthwiseAndOldArchitecturesTakeTheOtherPath) {
  EXPECT_THAT(Symbols(kResidualChain, kT4),
              ::testing::Not(::testing::Contains("kiln_pack_weights")));
  EXPECT_THAT(Symbols(R"(
input x: f32[8,32,56,56]
param w: f32[32,1,3,3]
y = conv2d(x, w, padding=1, groups=32)
output y
)",
                      kH100),
              ::testing::Not(::testing::Contains("kiln_pack_weights")));
}

std::string ReducedImages(const std::string& reduction) {
  return "input x: f32[8,32,56,56]\nparam w: f32[48,32,3,3]\n"
         "c = conv2d(x, w, padding=1)\nr = relu(c)\ny = " +
         reduction + "\noutput y\n";
}

TEST(ConvFusionTest, SumsMeansAndExtremesOfImagesAreTakenAlong) {
  for (const char* op : {"sum", "mean", "amax", "amin"}) {
    const std::string text = ReducedImages(std::string(op) + "(r, dim=[2,3])");
    for (const Target& target : {kH100, kA100}) {
      EXPECT_THAT(Symbols(text, target),
                  ElementsAre("kiln_pack_weights", "kiln_conv_reduce_images"));
    }
    // One partial state for each block and channel.
    EXPECT_LT(Fastest(text, kH100).workspace_bytes, 1 << 18);
  }
}

// Squeeze and excite: what is scaled goes through memory.
TEST(ConvFusionTest, AMeanOfImagesLeavesWhatIsReadAgain) {
  std::string text = ReducedImages("mul(r, s)");
  text.insert(text.find("y = "),
              "m = mean(r, dim=[2,3], keepdim=true)\ns = sigmoid(m)\n");
  EXPECT_THAT(Symbols(text, kH100),
              ElementsAre("kiln_pack_weights", "kiln_conv_reduce_images",
                          "kiln_pointwise"));
}

TEST(ConvFusionTest, OtherReductionsOverImagesHaveAKernelOfTheirOwn) {
  for (const char* other :
       {"logsumexp(r, dim=[2,3])", "sum(r, dim=2)", "mean(r, dim=[0,2,3])"}) {
    EXPECT_THAT(Symbols(ReducedImages(other), kH100),
                ElementsAre("kiln_pack_weights", "kiln_conv", "kiln_reduce"));
  }
}

// All channels of a pixel with so many taps are more weights than warpgroups
// have room for, but in parts of the filter, which take longer. Prevents that
// warps compute the convolution, six times slower.
TEST(ConvFusionTest, ReductionsThatWarpgroupsLackRoomForHaveTheirOwnKernel) {
  EXPECT_THAT(Symbols("input x: f32[32,128,28,28]\n"
                      "param w: f32[256,128,3,3]\n"
                      "c = conv2d(x, w, stride=2, padding=1)\n"
                      "y = amin(c, dim=1)\noutput y\n",
                      kH100),
              ElementsAre("kiln_pack_weights", "kiln_conv", "kiln_reduce"));
}

// Of a large filter parts cost nothing in 16 bits: a fifth less than apart.
TEST(ConvFusionTest, PartsOfALargeFilterMakeRoomForReductions) {
  EXPECT_THAT(Symbols("input x: bf16[2,160,100,100]\n"
                      "param w: bf16[192,160,5,5]\n"
                      "c = conv2d(x, w, stride=2, padding=2)\n"
                      "y = amin(c, dim=1)\noutput y\n",
                      kH100),
              ElementsAre("kiln_pack_weights", "kiln_conv_reduce"));
}

// So have windows, whether statistics are taken beside them or the convolution
// is computed again for them.
TEST(ConvFusionTest, WindowsThatOnlyWarpsCanJoinHaveAKernelOfTheirOwn) {
  EXPECT_THAT(
      Symbols(R"(
input x: f32[2,960,15,15]
param w: f32[960,256,5,5]
c = conv_transpose2d(x, w, stride=2)
n = group_norm(c, num_groups=32)
p = max_pool2d(n, kernel_size=3)
output p
)",
              kH100),
      ElementsAre("kiln_pack_weights", "kiln_conv_statistics", "kiln_pool2d"));
  EXPECT_THAT(
      Symbols(R"(
input x: f32[64,12,19,20]
param w: f32[12,8,3,3]
c = conv_transpose2d(x, w, stride=2, padding=1)
n = group_norm(c, num_groups=4)
a = add(n, c)
p = max_pool2d(a, kernel_size=3)
output p
)",
              kH100),
      ElementsAre("kiln_pack_weights", "kiln_conv_statistics", "kiln_pool2d"));
}

TEST(ConvFusionTest, WeightsThatAreParametersArePackedOnce) {
  const Schedule schedule = Fastest(kResidualChain, kH100);
  EXPECT_TRUE(schedule.kernels[0].prepares);
  EXPECT_GT(schedule.prepared_bytes, 0);

  std::string text = kResidualChain;
  text.replace(text.find("param w"), 7, "input w");
  const Schedule each_time = Fastest(text, kH100);
  EXPECT_FALSE(each_time.kernels[0].prepares);
  EXPECT_EQ(each_time.prepared_bytes, 0);
}

}  // namespace
}  // namespace kiln
