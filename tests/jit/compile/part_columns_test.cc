// Convolutions that are taken apart by columns of their filters
// (part_columns.h). Prevents that it is done where products have enough results
// anyway, where columns are not beside each other or few, and where a launch
// costs more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

std::string Head(int results, const std::string& kernel,
                 const std::string& attributes, int size = 256,
                 const std::string& type = "f32") {
  return fmt::format(
      "input x: {0}[4,64,{1},{1}]\nparam w: {0}[{2},64,{3}]\n"
      "param b: {0}[{2}]\nc = conv2d(x, w, b{4})\ny = tanh(c)\noutput y\n",
      type, size, results, kernel, attributes);
}

TEST(PartColumnsTest, ColumnsOfLargeFiltersWithFewResultsAreFilters) {
  for (const char* type : {"f32", "f16", "bf16"}) {
    const std::string text = Head(3, "7,7", ", padding=3", 256, type);
    const Schedule schedule = Fastest(text);
    EXPECT_THAT(
        SourceFilesOf(schedule),
        ElementsAre("pack_halves.cu", "conv_wgmma.cu", "sum_columns.cu"))
        << type;
    const ConvProblem& problem = ConvolutionOf(schedule).conv->problem;
    EXPECT_THAT(problem.output, ElementsAre(4, 21, 256, 256));
    EXPECT_THAT(problem.kernel, ElementsAre(7, 1));
    EXPECT_THAT(problem.padding, ElementsAre(3, 0));
    EXPECT_EQ(problem.columns_apart, 7);
    const Kernel& sum = schedule.kernels.back();
    EXPECT_EQ(sum.group.epilogue.size(), 1) << "tanh";
    EXPECT_THAT(sum.group.domain, ElementsAre(4, 3, 256, 256));
  }
}

TEST(PartColumnsTest, RowsKeepTheirStrideAndColumnsTheirDilation) {
  const Schedule schedule = Fastest(
      Head(2, "9,5", ", stride=[2,1], padding=[4,2], dilation=[1,3]", 512));
  const ConvProblem& problem = ConvolutionOf(schedule).conv->problem;
  EXPECT_THAT(problem.output, ElementsAre(4, 10, 256, 512));
  EXPECT_THAT(problem.stride, ElementsAre(2, 1));
  EXPECT_THAT(problem.dilation, ElementsAre(1, 1));
  EXPECT_THAT(schedule.kernels.back().group.domain,
              ElementsAre(4, 2, 256, 504));
}

TEST(PartColumnsTest, OthersStayWhole) {
  const auto parts = Contains("sum_columns.cu");
  EXPECT_THAT(SourceFilesOf(Head(3, "3,3", ", padding=1")), Not(parts));
  EXPECT_THAT(SourceFilesOf(Head(3, "1,7", ", padding=[0,3]")), Not(parts));
  EXPECT_THAT(SourceFilesOf(Head(8, "1,7", ", padding=[0,3]")), Not(parts))
      << "columns pass through memory";
  EXPECT_THAT(SourceFilesOf(Head(20, "7,7", ", padding=3")), Not(parts));
  EXPECT_THAT(SourceFilesOf(Head(16, "7,7", ", padding=3", 256, "f16")),
              Not(parts));
  EXPECT_THAT(SourceFilesOf(Head(3, "7,7", ", padding=3, stride=2")),
              Not(parts));
  EXPECT_THAT(SourceFilesOf(Head(3, "7,7", ", padding=3", 32)), Not(parts));
  EXPECT_THAT(SourceFilesOf(Head(3, "7,7", ", padding=3"), kA100), Not(parts));
}

TEST(PartColumnsTest, ComputedWeightsStayWhole) {
  EXPECT_THAT(SourceFilesOf("input x: f32[4,64,256,256]\n"
                            "param w: f32[3,64,7,7]\nv = mul(w, 2.0)\n"
                            "y = conv2d(x, v, padding=3)\noutput y\n"),
              Not(Contains("sum_columns.cu")));
}

// The kernel for any target knows where weights lie.
TEST(PartColumnsTest, WithoutRegistersForTilesTheyStayWhole) {
  const auto plan =
      *Canonicalize(*ParsePlanText(Head(3, "7,7", ", padding=3")));
  for (const Room room : {Room::kWarps, Room::kPlain}) {
    EXPECT_THAT(SourceFilesOf(MakeSchedules(plan, kH100, room, {}).front()),
                Not(Contains("sum_columns.cu")));
  }
}

}  // namespace
}  // namespace kiln
