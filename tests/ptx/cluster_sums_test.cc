// Convolutions whose chunks the blocks of a cluster share
// (conv_cluster_sums.cuh). Prevents chunks that nobody or two blocks multiply,
// sums that are added with another block's scale, and results of blocks that
// have a part of the sums.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/ptx/conv_plan_text.h"
#include "tests/ptx/plan_testing.h"

namespace kiln::ptx {
namespace {

using NamedPlan = std::pair<std::string, std::string>;

// With what follows in registers, in planes, over channels, images and windows.
std::vector<NamedPlan> PlansOfTails() {
  const std::string x = "1,512,10,12";
  const std::string w = "64,512,3,3";
  const std::string padded = "padding=1";
  return {
      {"store", Conv(x, w, padded, "y = relu(c)")},
      {"norm", Conv(x, w, padded,
                    "g = gelu(c)\ny = group_norm(g, "
                    "num_groups=8)")},
      {"logsumexp", Conv(x, w, padded, "y = logsumexp(c, dim=1)")},
      {"softmax", Conv(x, "40,512,3,3", padded, "y = softmax(c, dim=1)")},
      {"mean", Conv(x, w, padded, "g = silu(c)\ny = mean(g, dim=[2,3])")},
      {"pool", Conv("1,512,14,14", w, padded,
                    "r = silu(c)\n"
                    "y = avg_pool2d(r, kernel_size=3, stride=2, padding=1)")},
  };
}

// With other ways to bring input and to lay out tiles.
std::vector<NamedPlan> PlansOfTiles() {
  return {
      {"eights", Conv("2,512,8,8", "128,512,3,3", "padding=1", "y = relu(c)")},
      {"phases", Transpose("1,512,7,7", "512,64,4,4", "padding=1, stride=2",
                           "y = relu(c)")},
      {"strides", Conv("1,192,30,30", "24,192,7,7", "padding=3, stride=2",
                       "y = mean(c, dim=1)")},
      {"groups",
       Conv("1,1024,7,7", "128,256,3,3", "padding=1, groups=4", "y = relu(c)")},
      {"dilated", Conv("1,512,14,14", "64,512,3,3", "padding=3, dilation=3",
                       "y = relu(c)")},
      {"one_tap", Conv("1,1024,14,14", "128,1024,1,1", "", "y = relu(c)")},
      // The last block has fewer channels.
      {"channels_left_over",
       Conv("1,500,10,12", "64,500,3,3", "padding=1", "y = relu(c)")},
  };
}

// Each block finds another scale for what it brings.
NamedPlan ChannelsFarApart() {
  return {"channels_far_apart",
          "input x: f32[1,512,10,12]\nparam s: f32[512,1,1]\n"
          "param w: f32[64,512,3,3]\nt = mul(s, 6)\ne = exp(t)\na = mul(x, e)\n"
          "c = conv2d(a, w, padding=1)\ny = relu(c)\noutput y\n"};
}

std::vector<NamedPlan> PlansOfHalves() {
  return {
      {"f16",
       Conv("1,512,10,12", "64,512,3,3", "padding=1", "y = relu(c)", "f16")},
      {"f16_residual",
       Conv("1,512,8,12", "512,512,3,3", "padding=1", "y = add(c, x)", "f16")},
      {"f16_lines",
       Conv("1,2048,8,12", "64,2048,1,1", "", "y = relu(c)", "f16")},
      {"bf16_eights",
       Conv("1,960,16,16", "48,960,3,3", "padding=1", "y = silu(c)", "bf16")},
  };
}

void ExpectAgreementOfShared(const std::vector<NamedPlan>& plans,
                             const std::string& grade) {
  for (const auto& [name, text] : plans) {
    SCOPED_TRACE(name + " in " + grade);
    ExpectAgreementAnyway(
        "grade " + grade + "\n" + text, "sm_90a/132",
        [](const ConvGeometry& g) { EXPECT_GT(g.sum_blocks, 1); });
  }
}

TEST(PtxClusterSumsTest, AgreeWithTheReferenceBeforeAnyTail) {
  ExpectAgreementOfShared(PlansOfTails(), "fp32");
}

TEST(PtxClusterSumsTest, AgreeWithTheReferenceInAnyTile) {
  ExpectAgreementOfShared(PlansOfTiles(), "tf32");
}

TEST(PtxClusterSumsTest, AgreeWithTheReferenceInAnyScale) {
  ExpectAgreementOfShared({ChannelsFarApart()}, "fp32");
  ExpectAgreementOfShared({ChannelsFarApart()}, "tf32");
}

TEST(PtxClusterSumsTest, AgreeWithTheReferenceIn16Bits) {
  ExpectAgreementOfShared(PlansOfHalves(), "fp32");
}

}  // namespace
}  // namespace kiln::ptx
