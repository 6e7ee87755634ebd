// Linear layers of 16-bit numbers (linear.cu), by tiles of all kinds: chunks,
// channels and images that do not fill the last, rows that are no whole
// accesses of 16 bytes, clusters of each size, weights that are streamed,
// tensors that do not begin with an access.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/ptx/conv_plan_text.h"
#include "tests/ptx/plan_testing.h"

namespace kiln::ptx {
namespace {

constexpr char kTarget[] = "sm_90a/132";
constexpr int kRanks = 16;

const LinearTile* TileIn(const PlanKernels& kernels) {
  for (const Node& node : kernels.schedule.lowered.nodes) {
    if (node.direct) return node.direct->As<LinearTile>();
  }
  return nullptr;
}

std::vector<std::string> Layers() {
  return {
      Conv("40,2000,1,1", "72,2000,1,1", "", "y = relu(c)", "f16"),
      Conv("150,68,1,1", "100,68,1,1", "", "y = sigmoid(c)", "bf16"),
      Conv("270,130,1,1", "67,130,1,1", "", "y = tanh(c)", "f16"),
      Conv("70,33,1,1", "130,33,1,1", "", "y = tanh(c)", "f16"),
      Conv("9,24,5,6", "72,24,5,6", "", "y = silu(c)", "bf16"),
      "input x: f16[33,648,1,1]\ninput r: f16[33,128,1,1]\n"
      "param w: f16[128,648,1,1]\nparam b: f16[128]\nc = conv2d(x, w, b)\n"
      "s = add(c, r)\ny = gelu(s)\noutput y\noutput c\n",
  };
}

TEST(PtxLinearTest, AgreesWithTheReferenceInAllWays) {
  std::set<int> images, parts;
  for (const std::string& text : Layers()) {
    for (int rank = 0; rank < kRanks; ++rank) {
      SCOPED_TRACE(text + std::to_string(rank));
      PlanRunOptions options;
      options.tuning.linear = rank;
      const PlanKernels kernels = Compiled(text, kTarget, options);
      const LinearTile* const tile = TileIn(kernels);
      if (tile == nullptr) continue;  // of few images: lanes
      images.insert(tile->images);
      parts.insert(tile->parts);
      ExpectAgreementWithSpecials(kernels, {}, {{}},
                                  {Interrupted(), OffGrid()});
    }
  }
  EXPECT_EQ(parts, (std::set<int>{1, 2, 4, 8}));
  EXPECT_GE(images.size(), 5);
}

TEST(PtxLinearTest, LargeWeightsAreStreamed) {
  const PlanKernels kernels = Compiled(
      Conv("7,8200,1,1", "2100,8200,1,1", "", "y = relu(c)", "bf16"), kTarget);
  const LinearTile* const tile = TileIn(kernels);
  ASSERT_NE(tile, nullptr);
  EXPECT_TRUE(tile->streams);
  ExpectAgreement(kernels, {});
}

}  // namespace
}  // namespace kiln::ptx
