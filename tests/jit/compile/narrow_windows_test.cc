// Convolutions of windows with few results, and who computes them. Prevents
// that an image which a network makes waits for tensor cores that mostly
// multiply zeros, and that what these are faster at is taken from them.
#include "jit/compile/narrow_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

constexpr char kWindows[] = "narrow_windows.cu";

std::string Image(const std::string& x, const std::string& w,
                  const std::string& attributes = "padding=1",
                  const std::string& type = "f32",
                  const std::string& behind = "y = tanh(c)") {
  return fmt::format(
      "input x: {0}[{1}]\nparam w: {0}[{2}]\nc = conv2d(x, w, {3})\n{4}\n"
      "output y\n",
      type, x, w, attributes, behind);
}

TEST(NarrowWindowsTest, FewResultsAreOneKernel) {
  const std::string image = Image("16,64,256,256", "3,64,3,3");
  for (const char* const grade : {"", "grade tf32\n"}) {
    EXPECT_THAT(SourceFilesOf(grade + image), ElementsAre(kWindows));
  }
  for (const Target& target : {kA100, kT4}) {
    EXPECT_THAT(SourceFilesOf(image, target), ElementsAre(kWindows));
  }
  EXPECT_THAT(
      SourceFilesOf(Image("16,16,256,256", "2,16,3,3", "padding=1", "bf16")),
      ElementsAre(kWindows));
}

TEST(NarrowWindowsTest, MoreAreLeftToTensorCores) {
  const auto files = [](int results, int rows, const char* type,
                        const char* grade = "") {
    return SourceFilesOf(
        grade + Image("16,64,256,256", fmt::format("{},64,{},3", results, rows),
                      fmt::format("padding=[{},1]", rows / 2), type));
  };
  EXPECT_THAT(files(4, 5, "f32"), Contains(kWindows));
  EXPECT_THAT(files(5, 3, "f32"), Not(Contains(kWindows)));
  EXPECT_THAT(files(3, 3, "f32", "grade tf32\n"), Contains(kWindows));
  EXPECT_THAT(files(4, 3, "f32", "grade tf32\n"), Not(Contains(kWindows)));
  EXPECT_THAT(files(1, 7, "f32", "grade tf32\n"), Contains(kWindows));
  EXPECT_THAT(files(2, 9, "f32", "grade tf32\n"), Not(Contains(kWindows)));
  const auto of_16_bits = [](int results, int rows) {
    return SourceFilesOf(
        Image("16,64,256,256", fmt::format("{},64,{},3", results, rows),
              fmt::format("padding=[{},1]", rows / 2), "f16"),
        kA100);
  };
  EXPECT_THAT(of_16_bits(2, 5), Contains(kWindows));
  EXPECT_THAT(of_16_bits(3, 3), Not(Contains(kWindows)));
}

TEST(NarrowWindowsTest, OfFewChannelsMoreResultsAreFew) {
  const auto files = [](int results, const char* type) {
    return SourceFilesOf(Image("16,3,224,224", fmt::format("{},3,3,3", results),
                               "padding=1", type));
  };
  EXPECT_THAT(files(8, "f32"), Contains(kWindows));
  EXPECT_THAT(files(9, "f32"), Not(Contains(kWindows)));
  EXPECT_THAT(files(4, "f16"), Contains(kWindows));
  EXPECT_THAT(files(5, "f16"), Not(Contains(kWindows)));
}

TEST(NarrowWindowsTest, RowsThatVectorsDoNotDivideAreLeft) {
  EXPECT_THAT(SourceFilesOf(Image("16,64,256,254", "3,64,3,3")),
              Not(Contains(kWindows)));
  EXPECT_THAT(SourceFilesOf(Image("16,64,256,256", "3,64,3,3", "padding=0")),
              Not(Contains(kWindows)));
  EXPECT_THAT(SourceFilesOf(Image("16,64,256,256", "3,64,1,5", "padding=0")),
              Contains(kWindows));
}

TEST(NarrowWindowsTest, StridesAndGroupsAreLeft) {
  EXPECT_THAT(
      SourceFilesOf(Image("16,64,256,256", "3,64,3,3", "padding=1, stride=2")),
      Not(Contains(kWindows)));
  EXPECT_THAT(
      SourceFilesOf(Image("16,64,256,256", "4,32,3,3", "padding=1, groups=2")),
      Not(Contains(kWindows)));
}

TEST(NarrowWindowsTest, SignalsKeepTheirRow) {
  for (const char* const x : {"2,1,1,4096", "16,64,1,65536"}) {
    const std::string w = x[0] == '2' ? "4,1,1,9" : "1,64,1,9";
    const std::string text = Image(x, w, "padding=[0,4]");
    EXPECT_THAT(SourceFilesOf(text), Contains(kWindows));
    EXPECT_EQ(PartOf<WindowTile>(text).rows, 1);
  }
}

// Folded, the others' tiles have rows below each other.
TEST(NarrowWindowsTest, SignalsOfSeveralConvolutionsAreLeft) {
  EXPECT_THAT(SourceFilesOf("input x: f32[16,64,1,65536]\n"
                            "param v: f32[64,64,1,3]\nparam w: f32[1,64,1,9]\n"
                            "a = conv2d(x, v, padding=[0,1])\n"
                            "b = relu(a)\ny = conv2d(b, w, padding=[0,4])\n"
                            "output y\n"),
              Not(Contains(kWindows)));
}

TEST(NarrowWindowsTest, LargeWindowsAreLeft) {
  EXPECT_THAT(SourceFilesOf(Image("1,2,256,256", "1,2,15,15", "padding=7")),
              Contains(kWindows));
  EXPECT_THAT(
      SourceFilesOf(Image("1,2,256,256", "1,2,25,15", "padding=[12,7]")),
      Contains(kWindows));
  EXPECT_THAT(
      SourceFilesOf(Image("1,2,256,256", "1,2,31,15", "padding=[15,7]")),
      Not(Contains(kWindows)));
}

TEST(NarrowWindowsTest, ThreadsHaveNoMoreRowsThanThereAre) {
  EXPECT_LE(
      PartOf<WindowTile>(Image("64,4,3,256", "1,4,3,3", "padding=[0,1]")).rows,
      1);
}

TEST(NarrowWindowsTest, ManyChannelsOfFewPixelsAreLeft) {
  EXPECT_THAT(SourceFilesOf(Image("1,64,64,64", "3,64,3,3")),
              Not(Contains(kWindows)));
  EXPECT_THAT(SourceFilesOf(Image("8,64,128,128", "3,64,3,3")),
              Contains(kWindows));
}

TEST(NarrowWindowsTest, ResultsGoThroughMemoryWhereTheyAreFewBesideProducts) {
  const auto files = [](const char* x, const char* w) {
    return SourceFilesOf(
        Image(x, w, "padding=1", "f32", "y = max_pool2d(c, kernel_size=2)"));
  };
  EXPECT_THAT(files("16,64,256,256", "3,64,3,3"), Contains(kWindows));
  EXPECT_THAT(files("16,3,256,256", "4,3,3,3"), Not(Contains(kWindows)));
}

TEST(NarrowWindowsTest, ThreadsHaveFewerRowsOfManyResultsOrOfFewPixels) {
  EXPECT_EQ(PartOf<WindowTile>(Image("32,64,256,256", "1,64,3,3")).rows, 4);
  EXPECT_EQ(PartOf<WindowTile>(Image("16,64,256,256", "3,64,3,3")).rows, 2);
  const auto few = PartOf<WindowTile>(Image("8,64,128,128", "1,64,3,3"));
  EXPECT_EQ(few.rows, 1);
  EXPECT_GT(few.slices, 1);
}

}  // namespace
}  // namespace kiln
