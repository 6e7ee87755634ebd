// Linear layers on Hopper (linear_tile.h). Prevents that rows which lie
// as tensor cores want them are turned, that few products wait for tensor
// cores, and that many wait for lanes.
#include "jit/compile/linear_tile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "fmt/format.h"
#include "jit/compile/direct_spec.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Not;

constexpr char kLinear[] = "linear.cu";

std::string LinearLayer(int images, int inputs, int results,
                        const std::string& type = "f16", int size = 1) {
  return fmt::format(
      "input x: {0}[{1},{2},{4},{4}]\nparam w: {0}[{3},{2},{4},{4}]\n"
      "param b: {0}[{3}]\nc = conv2d(x, w, b)\ny = gelu(c)\noutput y\n",
      type, images, inputs, results, size);
}

std::vector<LinearWay> WaysOf(const std::string& text,
                              const Target& target = kH100) {
  const LoweredPlan plan = LoweredOf(text);
  return LinearWays(plan, plan.nodes.front(), Grade::kFp32, target);
}

TEST(LinearTileTest, RowsAreReadAsTheyLie) {
  for (const char* type : {"f16", "bf16"}) {
    EXPECT_THAT(SourceFilesOf(LinearLayer(4096, 768, 768, type)),
                ElementsAre(kLinear));
    EXPECT_THAT(SourceFilesOf(LinearLayer(64, 512, 4096, type, 7)),
                ElementsAre(kLinear));
  }
}

TEST(LinearTileTest, LayersOfAPerceptronAreAKernelEach) {
  EXPECT_THAT(SourceFilesOf("input x: f16[8192,512,1,1]\n"
                            "param v: f16[256,512,1,1]\n"
                            "param w: f16[64,256,1,1]\n"
                            "a = conv2d(x, v)\nb = relu(a)\nc = conv2d(b, w)\n"
                            "y = relu(c)\noutput y\n"),
              ElementsAre(kLinear, kLinear));
}

TEST(LinearTileTest, OthersAreLeftToTheirKernels) {
  const auto linear = Contains(kLinear);
  EXPECT_THAT(SourceFilesOf(LinearLayer(8, 768, 30000, "f32")), Not(linear))
      << "few rows";
  EXPECT_THAT(SourceFilesOf(LinearLayer(4096, 768, 768, "f32"), kA100),
              Not(linear));
  EXPECT_THAT(SourceFilesOf(LinearLayer(4096, 577, 768)), Not(linear))
      << "no copy of four bytes";
  EXPECT_THAT(SourceFilesOf(LinearLayer(256, 17, 256)), ElementsAre(kLinear));
  EXPECT_THAT(SourceFilesOf(LinearLayer(4096, 768, 768), kA100), Not(linear));
  EXPECT_THAT(SourceFilesOf(LinearLayer(32, 672, 28)), Not(linear))
      << "few products";
}

constexpr char kSplit[] = "split_rows.cu";
constexpr char kKept[] = "linear_kept.cu";

// Layers of f32 from `widths[0]` to `widths[1]` and so on.
std::string Perceptron(int images, const std::vector<int>& widths,
                       const std::string& grade = "fp32") {
  std::string text = fmt::format("grade {}\ninput v0: f32[{},{},1,1]\n", grade,
                                 images, widths[0]);
  for (size_t i = 1; i < widths.size(); ++i) {
    text +=
        fmt::format("param w{}: f32[{},{},1,1]\n", i, widths[i], widths[i - 1]);
  }
  for (size_t i = 1; i < widths.size(); ++i) {
    text +=
        fmt::format("c{0} = conv2d(v{1}, w{0})\nv{0} = relu(c{0})\n", i, i - 1);
  }
  return text + fmt::format("output v{}\n", widths.size() - 1);
}

TEST(LinearTileTest, RowsOfF32AreSplit) {
  EXPECT_THAT(SourceFilesOf(LinearLayer(4096, 768, 768, "f32")),
              ElementsAre(kSplit, kSplit, kLinear));
  EXPECT_THAT(
      SourceFilesOf("grade tf32\n" + LinearLayer(64, 512, 4096, "f32", 7)),
      ElementsAre(kSplit, kSplit, kLinear));
}

TEST(LinearTileTest, LayersLeaveHalvesForTheNext) {
  EXPECT_THAT(
      SourceFilesOf(Perceptron(4096, {100, 256, 256, 10})),
      ElementsAre(kSplit, kSplit, kLinear, kSplit, kLinear, kSplit, kLinear))
      << "of the input, and of weights";
  const Schedule wide = Fastest(Perceptron(4096, {100, 520, 10}), kH100);
  int split = 0;
  for (const Kernel& kernel : wide.kernels) split += kernel.splits() ? 1 : 0;
  EXPECT_EQ(split, 4) << "no block has all of a row";
}

TEST(LinearTileTest, WhatOthersReadIsNotLeftInHalvesAlone) {
  const Schedule schedule = Fastest(
      "input x: f32[4096,128,1,1]\nparam v: f32[128,128,1,1]\n"
      "param w: f32[64,128,1,1]\na = conv2d(x, v)\nb = relu(a)\n"
      "c = conv2d(b, w)\noutput b\noutput c\n",
      kH100);
  for (const Kernel& kernel : schedule.kernels) {
    EXPECT_FALSE(kernel.split_result);
  }
}

TEST(LinearTileTest, NarrowLayersOfManyRowsStayTurnedInFp32) {
  const auto split = Contains(kSplit);
  EXPECT_THAT(SourceFilesOf(Perceptron(65536, {64, 128, 128, 3})), Not(split));
  EXPECT_THAT(SourceFilesOf(Perceptron(65536, {64, 128, 128, 3}, "tf32")),
              split);
  EXPECT_THAT(SourceFilesOf(Perceptron(65536, {64, 128})), split);
}

TEST(LinearTileTest, SmallWeightsStay) {
  EXPECT_THAT(SourceFilesOf(Perceptron(65536, {64, 128}, "tf32")),
              Contains(kKept));
  EXPECT_THAT(SourceFilesOf(LinearLayer(65536, 128, 128)), ElementsAre(kKept));
  EXPECT_THAT(SourceFilesOf(LinearLayer(65536, 1024, 128)),
              ElementsAre(kLinear));
}

// Or a tile that lacks them would be followed by the plain kernel.
TEST(LinearTileTest, OtherRoomsLeaveMoreRegisters) {
  const LoweredPlan plan = LoweredOf(LinearLayer(4096, 768, 3072, "f32"));
  const auto most_sums = [&](int spare_registers) {
    int most = 0;
    for (const LinearWay& way : LinearWays(
             plan, plan.nodes.front(), Grade::kTf32, kH100, spare_registers)) {
      const auto& part = std::get<LinearTile>(way.tile.part);
      const int of_thread = 65536 / (way.tile.threads * way.tile.min_blocks);
      EXPECT_LE(part.images / 2 + spare_registers, of_thread);
      most = std::max(most, part.images / 2);
    }
    return most;
  };
  EXPECT_GT(most_sums(64), 0);
  EXPECT_GE(most_sums(0), most_sums(64));
}

TEST(LinearTileTest, WeightsThatAreReadOnceAreStreamed) {
  EXPECT_TRUE(PartOf<LinearTile>(LinearLayer(1, 4096, 14336)).streams);
  EXPECT_FALSE(PartOf<LinearTile>(LinearLayer(512, 4096, 14336)).streams)
      << "read by several blocks";
  EXPECT_FALSE(PartOf<LinearTile>(LinearLayer(64, 2048, 1000)).streams)
      << "the L2 may keep them";
}

TEST(LinearTileTest, FewTilesShareSums) {
  EXPECT_GT(PartOf<LinearTile>(LinearLayer(64, 2048, 1000)).parts, 1);
  EXPECT_EQ(PartOf<LinearTile>(LinearLayer(4096, 4096, 4096)).parts, 1);
}

TEST(LinearTileTest, WaysAreInTheOrderOfPredictedTimes) {
  const std::vector<LinearWay> ways = WaysOf(LinearLayer(1000, 1028, 500));
  ASSERT_GT(ways.size(), 4);
  for (size_t i = 1; i < ways.size(); ++i) {
    EXPECT_LE(*ways[i - 1].cycles, *ways[i].cycles);
  }
  for (const LinearWay& way : ways) {
    const auto& part = std::get<LinearTile>(way.tile.part);
    EXPECT_EQ(part.copied, 4);
    EXPECT_EQ(way.tile.vector, 4);
    EXPECT_LE((way.tile.shared_bytes + 1024) * way.tile.min_blocks, 228 * 1024);
  }
}

TEST(LinearTileTest, LanesAreAWayWhereImagesAreFew) {
  EXPECT_NE(WaysOf(LinearLayer(4, 2048, 1000)).front().tile.As<DenseTile>(),
            nullptr);
  EXPECT_NE(WaysOf(LinearLayer(1, 4096, 14336))[1].tile.As<DenseTile>(),
            nullptr);
  EXPECT_EQ(WaysOf(LinearLayer(4, 2048, 1000, "f16"), kA100).size(), 1);
}

TEST(LinearTileTest, VariantsTakeTheWays) {
  const std::string text = LinearLayer(1000, 1028, 500);
  const std::vector<LinearWay> ways = WaysOf(text);
  const Schedule third = Fastest(text, kH100, {.linear = 2});
  EXPECT_EQ(third.lowered.nodes.front().direct, ways[2].tile);
}

}  // namespace
}  // namespace kiln
