// Linear layers of few images (dense_tile.h). Prevents that a few numbers go
// through tensor cores and two kernels that turn them, and that many do not.
#include "jit/compile/dense_tile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

std::string Layer(int images, int inputs, int results,
                  const std::string& type = "f16", int size = 1,
                  const std::string& attributes = "") {
  return fmt::format(
      "input x: {0}[{1},{2},{4},{4}]\nparam w: {0}[{3},{2},{4},{4}]\n"
      "param b: {0}[{3}]\nc = conv2d(x, w, b{5})\ny = silu(c)\noutput y\n",
      type, images, inputs, results, size, attributes);
}

TEST(DenseTileTest, LayersOfFewImagesAreOneKernel) {
  for (const Target& target : {kH100, kA100, kT4}) {
    for (const char* type : {"f32", "f16", "bf16"}) {
      for (const int images : {1, 8, 32}) {
        EXPECT_THAT(SourceFilesOf(Layer(images, 672, 28, type), target),
                    ElementsAre("dense.cu"))
            << target.arch << type << images;
      }
    }
  }
  EXPECT_THAT(SourceFilesOf(Layer(4, 64, 100, "f16", 7)),
              ElementsAre("dense.cu"));
}

// A patch that is the image is not laid out first.
TEST(DenseTileTest, StridesDoNotMatter) {
  EXPECT_THAT(SourceFilesOf(Layer(8, 3, 1000, "f16", 16, ", stride=16")),
              ElementsAre("dense.cu"));
}

TEST(DenseTileTest, LanesHaveAnAccessEach) {
  const DirectTile of_few = DirectTileOf(Layer(8, 28, 672));
  EXPECT_EQ(of_few.vector, 4) << "28 are seven fours";
  EXPECT_EQ(of_few.As<DenseTile>()->lanes, 8);
  const DirectTile of_many = DirectTileOf(Layer(8, 2048, 10));
  EXPECT_EQ(of_many.vector, 8);
  EXPECT_EQ(of_many.As<DenseTile>()->lanes, 32);
  EXPECT_EQ(DirectTileOf(Layer(8, 33, 10)).vector, 1);
}

TEST(DenseTileTest, LanesShareAsManySumsAsLeaveEnoughWarps) {
  const auto small = PartOf<DenseTile>(Layer(32, 672, 28, "f32"));
  const auto large = PartOf<DenseTile>(Layer(32, 1024, 1000, "f32"), kA100);
  EXPECT_GT(large.images * large.results, small.images * small.results);
  EXPECT_LE(large.images * large.results, large.lanes);
  EXPECT_EQ(PartOf<DenseTile>(Layer(1, 1024, 1000)).images, 1);
}

TEST(DenseTileTest, OthersAreLeftToTensorCores) {
  const auto dense = Contains("dense.cu");
  EXPECT_THAT(SourceFilesOf(Layer(65, 672, 28)), Not(dense)) << "images";
  EXPECT_THAT(SourceFilesOf(Layer(64, 4096, 4096)), Not(dense)) << "products";
  EXPECT_THAT(SourceFilesOf(Layer(1, 4096, 4096)), dense) << "as weights come";
  EXPECT_THAT(SourceFilesOf(Layer(1, 512, 4096, "f32", 28)), Not(dense))
      << "long sums";
  EXPECT_THAT(SourceFilesOf(Layer(8, 512, 10, "f16", 7)), Not(dense))
      << "a few lanes would have all";
  EXPECT_THAT(SourceFilesOf(Layer(4, 64, 100, "f16", 3, ", padding=1")),
              Not(dense));
}

}  // namespace
}  // namespace kiln
