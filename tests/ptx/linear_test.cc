// Linear layers (linear.cu, linear_kept.cu), by tiles of all kinds: chunks,
// channels and images that do not fill the last, rows that are no whole
// accesses of 16 bytes, clusters of each size, weights that are streamed or
// stay, tensors that do not begin with an access. Of f32 in halves
// (split_rows.cu): what a layer leaves for the next, in both grades, with
// infinities, and with sums as tensor cores round them.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/ptx/conv_plan_text.h"
#include "tests/ptx/plan_testing.h"

namespace kiln::ptx {
namespace {

constexpr char kTarget[] = "sm_90a/132";
constexpr char kSmallTarget[] = "sm_90a/2";
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

// In halves of f32, one layer or several.
std::vector<std::string> SplitLayers() {
  return {
      Conv("70,200,1,1", "72,200,1,1", "", "y = relu(c)", "f32"),
      Conv("300,131,1,1", "67,131,1,1", "", "y = tanh(c)", "f32"),
      Conv("33,24,5,6", "150,24,5,6", "", "y = silu(c)", "f32"),
      "input x: f32[70,48,1,1]\nparam u: f32[128,48,1,1]\n"
      "param v: f32[64,128,1,1]\nparam b: f32[64]\nparam w: f32[3,64,1,1]\n"
      "c = conv2d(x, u)\nd = gelu(c)\ne = conv2d(d, v, b)\nf = tanh(e)\n"
      "y = conv2d(f, w)\noutput y\n",
      // What a layer reads is read by an op of its maker's kernel, too; both
      // its readers have the same halves.
      "input x: f32[90,128,1,1]\nparam u: f32[136,128,1,1]\n"
      "param v: f32[256,136,1,1]\nparam w: f32[64,136,1,1]\n"
      "c = conv2d(x, u)\nd = relu(c)\ns = sigmoid(d)\ne = conv2d(d, v)\n"
      "f = conv2d(d, w)\noutput s\noutput e\noutput f\n",
      // Weights of the workspace.
      "input x: f32[130,96,1,1]\ninput u: f32[200,96,1,1]\n"
      "input w: f32[50,200,1,1]\nc = conv2d(x, u)\nd = relu(c)\n"
      "y = conv2d(d, w)\noutput y\n",
  };
}

// Of two multiprocessors, where blocks have many tiles and so keep weights, and
// of many.
void ExpectAgreementInAllWays(const std::string& grade,
                              const std::string& target) {
  bool keeps_weights = false;
  bool leaves_halves = false;
  for (const std::string& layer : SplitLayers()) {
    for (const int rank : {0, 1, 3, 6, 9, 14}) {
      SCOPED_TRACE(layer + std::to_string(rank));
      PlanRunOptions options;
      options.tuning.linear = rank;
      const PlanKernels kernels =
          Compiled("grade " + grade + "\n" + layer, target, options);
      for (const std::string& file : kernels.files) {
        keeps_weights = keeps_weights || file == "linear_kept.cu";
      }
      for (const Kernel& kernel : kernels.schedule.kernels) {
        leaves_halves = leaves_halves || kernel.split_result.has_value();
      }
      ExpectAgreementWithSpecials(kernels, {}, {{}},
                                  {Interrupted(), OffGrid()});
    }
  }
  EXPECT_EQ(keeps_weights, target == kSmallTarget);
  EXPECT_TRUE(leaves_halves);
}

TEST(PtxLinearTest, HalvesAgreeWithTheReferenceInFp32) {
  ExpectAgreementInAllWays("fp32", kTarget);
  ExpectAgreementInAllWays("fp32", kSmallTarget);
}

TEST(PtxLinearTest, HalvesAgreeWithTheReferenceInTf32) {
  ExpectAgreementInAllWays("tf32", kTarget);
  ExpectAgreementInAllWays("tf32", kSmallTarget);
}

// Rows of zeros and an infinity have the smallest factor there is.
TEST(PtxLinearTest, InfinitiesStayWhereFactorsAreSmall) {
  PlanRunOptions options;
  options.tuning.linear = 1;
  const PlanKernels kernels = Compiled(
      "input x: f32[33,1,1,1]\ninput w: f32[64,1,1,1]\n"
      "u = mul(w, 1e-10)\nc = conv2d(x, u)\noutput c\n",
      kTarget, options);
  ExpectAgreementWithSpecials(kernels, {}, {{}}, {});
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
