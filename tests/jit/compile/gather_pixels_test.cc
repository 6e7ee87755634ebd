// Convolutions that have a single pixel of each image for their result.
// Prevents that a linear layer runs as thousands of tiles of one pixel, sixty
// times slower.
#include "jit/compile/gather_pixels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "jit/compile/schedule_rewrites.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Linear(int images, int outputs, const std::string& options = "",
                   int size = 1) {
  return fmt::format(
      "input x: f32[{0},256,{3},{3}]\nparam w: f32[{1},256,{3},{3}]\n"
      "c = conv2d(x, w{2})\ny = gelu(c)\noutput y\n",
      images, outputs, options, size);
}

TEST(GatherPixelsTest, ALinearLayerIsOneImage) {
  EXPECT_THAT(
      SourceFilesOf(Linear(1000, 512)),
      ElementsAre("turn.cu", "pack_halves.cu", "conv_wgmma.cu", "turn.cu"));
  const Schedule schedule = Fastest(Linear(1000, 512));
  EXPECT_GT(schedule.prepared_bytes, 0) << "weights are packed once";
  EXPECT_THAT(SourceFilesOf(Linear(1000, 512), kA100), Contains("turn.cu"));
}

TEST(GatherPixelsTest, SoIsAFilterAsLargeAsTheImage) {
  EXPECT_THAT(SourceFilesOf(Linear(500, 512, "", 7)), Contains("turn.cu"));
  EXPECT_THAT(SourceFilesOf(Linear(500, 512, ", stride=3", 7)),
              Contains("turn.cu"));
}

TEST(GatherPixelsTest, LeavesOthersAsTheyAre) {
  EXPECT_THAT(SourceFilesOf(Linear(32, 256)), Not(Contains("turn.cu")));
  EXPECT_THAT(SourceFilesOf(Linear(1, 20000)), Not(Contains("turn.cu")));
  EXPECT_THAT(SourceFilesOf(Linear(500, 512, ", padding=1", 3)),
              Not(Contains("turn.cu")));
  EXPECT_THAT(SourceFilesOf(Linear(500, 512), Target{"sm_75", 40}),
              Not(Contains("turn.cu")));
}

// A generator's first layer.
std::string OfLatents(const std::string& options = "", int size = 1,
                      const std::string& bias = "") {
  return fmt::format(
      "input x: f16[128,100,{1},{1}]\nparam w: f16[100,512,4,4]\n"
      "param b: f16[512]\nt = conv_transpose2d(x, w{2}{0})\n"
      "y = relu(t)\noutput y\n",
      options, size, bias);
}

TEST(GatherPixelsTest, SoIsATransposedFilterOfSinglePixels) {
  const std::vector<std::string> files = SourceFilesOf(OfLatents());
  EXPECT_THAT(files, ElementsAre("turn.cu", "pack_halves.cu", "conv_wgmma.cu",
                                 "turn.cu"));
  EXPECT_EQ(SourceFilesOf(OfLatents(", stride=3")), files);
  EXPECT_EQ(SourceFilesOf(OfLatents("", 1, ", b")), files) << "with a bias";
}

TEST(GatherPixelsTest, LeavesOtherTransposedConvolutions) {
  EXPECT_THAT(SourceFilesOf(OfLatents("", 2)), Not(Contains("turn.cu")));
  for (const char* options :
       {", padding=1", ", stride=2, output_padding=1", ", dilation=2"}) {
    EXPECT_THAT(SourceFilesOf(OfLatents(options)), Not(Contains("turn.cu")))
        << options;
  }
}

// Not all of the filter, or not side by side, though as large.
TEST(GatherPixelsTest, LeavesResultsThatAreAsLargeAsTheFilter) {
  for (const char* options :
       {", stride=3, padding=1, output_padding=2", ", padding=1, dilation=2"}) {
    EXPECT_THAT(SourceFilesOf(fmt::format(
                    "input x: f16[128,100,1,1]\nparam w: f16[100,512,3,3]\n"
                    "y = conv_transpose2d(x, w{})\noutput y\n",
                    options)),
                Not(Contains("turn.cu")))
        << options;
  }
}

TEST(GatherPixelsTest, ExplainSaysSo) {
  const CanonicalPlan plan = *Canonicalize(*ParsePlanText(Linear(1000, 512)));
  EXPECT_THAT(RewritesOf(plan, MakeSchedules(plan, kH100).front()),
              Contains(HasSubstr("i0_gathered = turn(i0)")));
}

}  // namespace
}  // namespace kiln
