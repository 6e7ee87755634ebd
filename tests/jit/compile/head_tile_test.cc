// Convolutions of 16-bit numbers with few results (head_tile.h). Prevents that
// networks which make images end with products of which most results are
// padding, and that others lose what they do better.
#include "jit/compile/head_tile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

constexpr char kHead[] = "head_conv2d.cu";

// A convolution of 8 images of size x size, and what is in front and behind.
std::string LastLayer(int channels, int results, int filter,
                      const std::string& type = "f16", int size = 256,
                      const std::string& front = "a = x",
                      const std::string& after = "y = sigmoid(c)") {
  const bool is_plain = front == "a = x";
  return fmt::format(
      "input x: {0}[8,{1},{2},{2}]\nparam w: {0}[{3},{1},{4},{4}]\n{5}"
      "c = conv2d({6}, w, padding={7})\n{8}\noutput y\n",
      type, channels, size, results, filter, is_plain ? "" : front + "\n",
      is_plain ? "x" : "a", filter / 2, after);
}

TEST(HeadTileTest, FewResultsAreOneKernel) {
  for (const char* type : {"f16", "bf16"}) {
    for (const int results : {1, 3, 5}) {
      EXPECT_THAT(SourceFilesOf(LastLayer(64, results, 3, type)),
                  ElementsAre(kHead));
    }
  }
  EXPECT_THAT(SourceFilesOf(LastLayer(512, 4, 3)), ElementsAre(kHead));
}

TEST(HeadTileTest, OthersAreLeftToTheirKernels) {
  const auto head = Contains(kHead);
  EXPECT_THAT(SourceFilesOf(LastLayer(64, 3, 3), kA100), Not(head));
  EXPECT_THAT(SourceFilesOf(LastLayer(64, 3, 3, "f32")), Not(head));
  EXPECT_THAT(SourceFilesOf(LastLayer(64, 6, 3)), Not(head)) << "18 rows";
  EXPECT_THAT(SourceFilesOf(LastLayer(64, 3, 1)), Not(head)) << "one tap";
  EXPECT_THAT(SourceFilesOf(LastLayer(64, 1, 5)), Not(head)) << "columns";
  EXPECT_THAT(SourceFilesOf("input x: f16[8,64,1,16384]\n"
                            "param w: f16[1,64,1,3]\n"
                            "c = conv2d(x, w, padding=[0,1])\n"
                            "y = sigmoid(c)\noutput y\n"),
              Not(head))
      << "signals";
  EXPECT_THAT(SourceFilesOf(LastLayer(8, 5, 3)), Not(head)) << "channels";
  EXPECT_THAT(SourceFilesOf(LastLayer(32, 1, 3)), Not(head))
      << "channels of one";
  EXPECT_THAT(SourceFilesOf(LastLayer(64, 3, 3, "f16", 56)), Not(head))
      << "pixels";
  EXPECT_THAT(SourceFilesOf(LastLayer(64, 3, 3, "f16", 252)), Not(head))
      << "rows";
  EXPECT_THAT(SourceFilesOf(LastLayer(64, 3, 3, "f16", 256, "a = x",
                                      "y = mean(c, dim=[2, 3])")),
              Not(head))
      << "reduced on chip";
}

// Ops on inputs are done as others bring these; of a norm there is a kernel
// in front anyway.
TEST(HeadTileTest, WhatStandsInFrontDecides) {
  EXPECT_THAT(SourceFilesOf(LastLayer(64, 3, 3, "f16", 256, "a = silu(x)")),
              Not(Contains(kHead)));
  EXPECT_THAT(SourceFilesOf(LastLayer(64, 3, 3, "f16", 256,
                                      "n = group_norm(x, num_groups=8)\n"
                                      "a = silu(n)")),
              Contains(kHead));
}

// Each value is looked at once, however many ops read it.
TEST(HeadTileTest, LooksAtLongChainsOnce) {
  std::string text =
      "input x: f16[8,64,256,256]\nparam w: f16[3,64,3,3]\na0 = relu(x)\n";
  for (int i = 0; i < 30; ++i) {
    text +=
        fmt::format("t{0} = tanh(a{0})\na{1} = mul(a{0}, t{0})\n", i, i + 1);
  }
  text += "c = conv2d(a30, w, padding=1)\ny = tanh(c)\noutput y\n";
  EXPECT_THAT(SourceFilesOf(text), Not(Contains(kHead)));
}

TEST(HeadTileTest, TwoBlocksShareAMultiprocessor) {
  for (const int channels : {64, 512}) {
    const DirectTile tile = DirectTileOf(LastLayer(channels, 3, 3));
    EXPECT_LE(2 * (tile.shared_bytes + 1024), 228 * 1024);
    EXPECT_EQ(tile.blocks, 264);
  }
}

}  // namespace
}  // namespace kiln
