// Convolutions of one tap with few results, and who computes them. Prevents
// that what ends a network for segmentation waits for tensor cores that have
// nothing to multiply, and that what these are faster at is taken from them.
#include "jit/compile/narrow_conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

constexpr char kNarrow[] = "narrow_conv2d.cu";

std::string Head(const std::string& x, int channels, int results,
                 const std::string& type = "f32",
                 const std::string& behind = "sigmoid(c)",
                 const std::string& attributes = "") {
  return fmt::format(
      "input x: {0}[{1}]\nparam w: {0}[{2},{3},1,1]\nparam b: {0}[{2}]\n"
      "c = conv2d(x, w, b{4})\ny = {5}\noutput y\n",
      type, x, results, channels, attributes, behind);
}

TEST(NarrowConvTest, FewResultsAreOneKernel) {
  for (const char* const grade : {"", "grade tf32\n"}) {
    EXPECT_THAT(SourceFilesOf(grade + Head("16,32,512,512", 32, 3)),
                ElementsAre(kNarrow));
  }
  EXPECT_THAT(SourceFilesOf(Head("16,32,512,512", 32, 3, "f16")),
              ElementsAre(kNarrow));
  EXPECT_THAT(SourceFilesOf(Head("16,32,512,512", 32, 3), kA100),
              ElementsAre(kNarrow));
  EXPECT_THAT(SourceFilesOf(Head("16,32,512,512", 32, 3), kT4),
              ElementsAre(kNarrow));
}

TEST(NarrowConvTest, MoreAreLeftToTensorCores) {
  const auto files = [](int results, const char* type) {
    return SourceFilesOf(Head("16,64,128,128", 64, results, type));
  };
  EXPECT_THAT(files(12, "f32"), Contains(kNarrow));
  EXPECT_THAT(files(13, "f32"), Not(Contains(kNarrow)));
  EXPECT_THAT(files(4, "bf16"), Contains(kNarrow));
  EXPECT_THAT(files(5, "bf16"), Not(Contains(kNarrow)));
}

// Which would have an eighth of a unit to multiply.
TEST(NarrowConvTest, OfFewChannelsFewerAreLeft) {
  EXPECT_THAT(SourceFilesOf(Head("16,3,256,256", 3, 8, "f16")),
              Contains(kNarrow));
  EXPECT_THAT(SourceFilesOf(Head("16,3,256,256", 3, 9, "f16")),
              Not(Contains(kNarrow)));
}

TEST(NarrowConvTest, OnlyOfOneTapThatReadsItsOwnPixel) {
  for (const char* const attributes : {", stride=2", ", padding=1"}) {
    EXPECT_THAT(SourceFilesOf(
                    Head("16,64,128,128", 64, 3, "f32", "relu(c)", attributes)),
                Not(Contains(kNarrow)));
  }
  EXPECT_THAT(SourceFilesOf("input x: f32[16,64,128,128]\n"
                            "param w: f32[3,64,3,3]\n"
                            "y = conv2d(x, w, padding=1)\noutput y\n"),
              Not(Contains(kNarrow)));
  EXPECT_THAT(SourceFilesOf("input x: f32[16,64,128,128]\n"
                            "param w: f32[8,8,1,1]\n"
                            "y = conv2d(x, w, groups=8)\noutput y\n"),
              Not(Contains(kNarrow)));
}

// A linear layer, and channels one after the other of hardly any pixels.
TEST(NarrowConvTest, NotOfFewPixels) {
  EXPECT_THAT(SourceFilesOf(Head("1000,256,1,1", 256, 8)),
              Not(Contains(kNarrow)));
  EXPECT_THAT(SourceFilesOf(Head("8,1024,14,14", 1024, 8)),
              Not(Contains(kNarrow)));
  EXPECT_THAT(SourceFilesOf(Head("64,480,24,24", 480, 8)), Contains(kNarrow));
}

TEST(NarrowConvTest, ResultsGoThroughMemoryIfTheyAreASmallPart) {
  const std::string softmax = "softmax(c, dim=1)";
  EXPECT_THAT(SourceFilesOf(Head("16,64,256,256", 64, 4, "f32", softmax)),
              Contains(kNarrow));
  EXPECT_THAT(SourceFilesOf(Head("16,64,256,256", 64, 5, "f32", softmax)),
              Not(Contains(kNarrow)));
  EXPECT_THAT(SourceFilesOf(Head("16,64,256,256", 64, 4, "f16", softmax)),
              Not(Contains(kNarrow)));
  EXPECT_THAT(SourceFilesOf(Head("16,64,256,256", 64, 5, "f32",
                                 "max_pool2d(c, kernel_size=2)")),
              Not(Contains(kNarrow)));
}

TEST(NarrowConvTest, VectorsEndWithImages) {
  EXPECT_EQ(DirectTileOf(Head("64,64,56,56", 64, 8)).vector, 2);
  EXPECT_EQ(DirectTileOf(Head("64,33,49,49", 33, 4)).vector, 1);
  EXPECT_EQ(DirectTileOf(Head("64,64,50,61", 64, 4, "f16")).vector, 2);
  EXPECT_EQ(DirectTileOf(Head("16,64,128,128", 64, 12)).vector, 4);
  EXPECT_THAT(SourceFilesOf(Head("16,64,127,127", 64, 12)),
              Not(Contains(kNarrow)))
      << "many results of single pixels read weights too often";
}

TEST(NarrowConvTest, FewPixelsAndManyChannelsAreShared) {
  EXPECT_EQ(PartOf<OneTapTile>(Head("16,32,512,512", 32, 3)).slices, 1);
  EXPECT_EQ(PartOf<OneTapTile>(Head("64,480,24,24", 480, 8)).slices, 4);
  EXPECT_EQ(PartOf<OneTapTile>(Head("1,64,56,56", 64, 8)).slices, 8);
  EXPECT_EQ(PartOf<OneTapTile>(Head("16,512,128,128", 512, 8)).slices, 2)
      << "long sums lose digits";
  EXPECT_EQ(PartOf<OneTapTile>(Head("1,24,56,56", 24, 4)).slices, 2)
      << "a slice has a chunk";
}

TEST(NarrowConvTest, ChunksHaveNoRestIfTheyNeedNot) {
  EXPECT_EQ(PartOf<OneTapTile>(Head("64,64,56,56", 64, 4)).channels, 8);
  EXPECT_EQ(PartOf<OneTapTile>(Head("64,36,56,56", 36, 4)).channels, 6);
  EXPECT_EQ(PartOf<OneTapTile>(Head("64,37,56,56", 37, 4)).channels, 8);
  EXPECT_EQ(PartOf<OneTapTile>(Head("64,3,56,56", 3, 4)).channels, 3);
}

// Blocks that are all there at once have more of the input on its way.
TEST(NarrowConvTest, ThreadsOfFewBlocksHaveMoreRegisters) {
  const DirectTile few = DirectTileOf(Head("64,64,56,56", 64, 8));
  EXPECT_EQ(few.min_blocks, 3);
  EXPECT_EQ(few.As<OneTapTile>()->channels, 8);
  const DirectTile many = DirectTileOf(Head("16,64,512,512", 64, 8));
  EXPECT_EQ(many.min_blocks, 4);
  EXPECT_EQ(many.As<OneTapTile>()->channels, 4);
}

TEST(NarrowConvTest, ThePlainScheduleHasNone) {
  const Schedule schedule =
      MakeSchedules(*Canonicalize(*ParsePlanText(Head("16,32,512,512", 32, 3))),
                    kH100, Room::kPlain)[0];
  EXPECT_THAT(SourceFilesOf(schedule), ElementsAre("conv2d.cu"));
}

TEST(NarrowConvTest, ImagesAreReadAsTheyLie) {
  EXPECT_THAT(SourceFilesOf(Head("64,100,7,7", 100, 4, "f16")),
              ElementsAre(kNarrow));
  EXPECT_THAT(SourceFilesOf(Head("64,16,6,6", 16, 4)), ElementsAre(kNarrow));
}

}  // namespace
}  // namespace kiln
