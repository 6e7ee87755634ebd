// Convolutions of few channels (stem_tile.h). Prevents that networks which read
// images begin with products of which most are zeros, and that tensor cores'
// other kernels lose what they do better.
#include "jit/compile/stem_tile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

constexpr char kStem[] = "stem_conv2d.cu";

// A convolution of [32,channels,size,size], and what follows it.
std::string Stem(int channels, int results, int filter,
                 const std::string& type = "f16",
                 const std::string& attributes = ", stride=2, padding=1",
                 int size = 224, const std::string& after = "y = silu(c)") {
  return fmt::format(
      "input x: {0}[32,{1},{2},{2}]\nparam w: {0}[{3},{1},{4},{4}]\n"
      "param b: {0}[{3}]\nc = conv2d(x, w, b{5})\n{6}\noutput y\n",
      type, channels, size, results, filter, attributes, after);
}

TEST(StemTileTest, FewChannelsAreOneKernel) {
  for (const Target& target : {kH100, kA100}) {
    for (const char* type : {"f16", "bf16"}) {
      for (const int channels : {1, 2, 3, 4}) {
        EXPECT_THAT(SourceFilesOf(Stem(channels, 32, 3, type), target),
                    ElementsAre(kStem))
            << target.arch << type << channels;
      }
    }
  }
}

TEST(StemTileTest, OthersAreLeftToTheirKernels) {
  const auto stem = Contains(kStem);
  EXPECT_THAT(SourceFilesOf(Stem(3, 32, 3), kT4), Not(stem)) << "no 16 x 8";
  EXPECT_THAT(SourceFilesOf(Stem(5, 32, 3)), Not(stem)) << "channels";
  EXPECT_THAT(SourceFilesOf(Stem(3, 160, 3)), Not(stem)) << "results";
  EXPECT_THAT(SourceFilesOf(Stem(3, 64, 7, "f16", ", stride=2, padding=3")),
              Not(stem))
      << "taps";
  EXPECT_THAT(SourceFilesOf("input x: f16[32,1,1,4096]\n"
                            "param w: f16[16,1,1,9]\n"
                            "c = conv2d(x, w, padding=[0,4])\n"
                            "y = relu(c)\noutput y\n"),
              Not(stem))
      << "signals";
  EXPECT_THAT(SourceFilesOf(Stem(3, 32, 3, "f16", "", 29)), Not(stem))
      << "rows of 27";
  EXPECT_THAT(SourceFilesOf(Stem(3, 32, 3, "f16", ", padding=1", 224,
                                 "y = max_pool2d(c, kernel_size=2)")),
              Not(stem))
      << "pooled on chip";
}

TEST(StemTileTest, OfF32OnlyWhereMemoryWaits) {
  const auto of = [](const std::string& grade, const std::string& text) {
    return SourceFilesOf("grade " + grade + "\n" + text);
  };
  EXPECT_THAT(of("tf32", Stem(3, 32, 3, "f32")), Contains(kStem));
  EXPECT_THAT(of("tf32", Stem(3, 128, 5, "f32")), Not(Contains(kStem)));
  EXPECT_THAT(of("tf32", Stem(3, 32, 3, "f32", ", stride=2, padding=1", 64)),
              Not(Contains(kStem)));
  EXPECT_THAT(of("fp32", Stem(3, 32, 3, "f32")), Not(Contains(kStem)));
  EXPECT_THAT(of("fp32", Stem(1, 64, 3, "f32", ", padding=1")), Contains(kStem))
      << "two steps";
}

// Of few channels a quad has rows of the filter that divide it.
TEST(StemTileTest, QuadsHaveAllChannelsOfWholeRows) {
  const auto rows = [](int channels, int filter) {
    return PartOf<StemTile>(Stem(channels, 32, filter, "f16",
                                 fmt::format(", padding={}", filter / 2),
                                 224 - (filter + 1) % 2))
        .rows_of_quad;
  };
  EXPECT_EQ(rows(4, 4), 1);
  EXPECT_EQ(rows(3, 3), 1);
  EXPECT_EQ(rows(2, 4), 2);
  EXPECT_EQ(rows(2, 3), 1);
  EXPECT_EQ(rows(1, 4), 4);
  EXPECT_EQ(rows(1, 3), 3);
  EXPECT_EQ(rows(1, 5), 1);
}

TEST(StemTileTest, WarpsHaveAllChannels) {
  for (const int results : {8, 16, 24, 48, 64, 96, 128}) {
    const auto tile = PartOf<StemTile>(Stem(3, results, 3));
    EXPECT_GE(tile.warps_c * tile.tiles_m * 16, results);
    EXPECT_LT((tile.warps_c - 1) * tile.tiles_m * 16, results);
  }
}

// As many as run at once, which share the tiles.
TEST(StemTileTest, BlocksStay) {
  const DirectTile tile = DirectTileOf(Stem(3, 32, 3));
  EXPECT_EQ(tile.blocks, 132 * tile.min_blocks);
  EXPECT_LE(tile.shared_bytes * tile.min_blocks, 227 * 1024);
}

// What lanes read at once lies in different banks: a stride's runs are 8 or 16
// words apart, or of single columns whole.
TEST(StemTileTest, RunsOfQuadsAreApart) {
  const DirectTile tile = DirectTileOf(Stem(3, 32, 3));
  const int words = tile.As<StemTile>()->run * 2 % 32;
  EXPECT_EQ(words, tile.vector == 8 ? 8 : 16);
}

}  // namespace
}  // namespace kiln
