// Input that is laid down before a convolution of one tap. Prevents that blocks
// of many channels convert the same input again and again, that a plan lays the
// same down twice, and that a convolution begins before its input lies there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "jit/compile/kernel_traffic.h"
#include "jit/compile/schedule_report.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string OneTap(const std::string& x, const std::string& w,
                   const std::string& rest = "y = gelu(c)",
                   const std::string& grade = "tf32",
                   const std::string& dtype = "f32") {
  return fmt::format(
      "grade {0}\ninput x: {1}[{2}]\nparam w: {1}[{3}]\nc = conv2d(x, w)\n"
      "{4}\noutput y\n",
      grade, dtype, x, w, rest);
}

const char kInput[] = "16,768,14,14";
const char kOneTapFilter[] = "3072,768,1,1";

int CountLayers(const std::string& text, const Target& target = kH100) {
  const std::vector<std::string> files = SourceFilesOf(Fastest(text, target));
  return static_cast<int>(
      std::count(files.begin(), files.end(), "lay_lines.cu"));
}

TEST(LaidLinesTest, ManyBlocksOfChannelsShareThem) {
  EXPECT_THAT(SourceFilesOf(Fastest(OneTap(kInput, kOneTapFilter))),
              ElementsAre("pack_halves.cu", "lay_lines.cu", "conv_wgmma.cu"));
  EXPECT_EQ(CountLayers(OneTap(kInput, kOneTapFilter, "y = gelu(c)", "fp32")),
            1);
  EXPECT_EQ(CountLayers("input x: f16[16,768,14,14]\n"
                        "param w: f32[3072,768,1,1]\nc = conv2d(x, w)\n"
                        "y = gelu(c)\noutput y\n"),
            1)
      << "f32 weights, of which halves have two parts";
}

TEST(LaidLinesTest, OthersBringTheirInputThemselves) {
  EXPECT_EQ(
      CountLayers(OneTap(kInput, kOneTapFilter, "y = gelu(c)", "tf32", "f16")),
      0)
      << "halves as they are";
  EXPECT_EQ(CountLayers(OneTap("16,768,14,14", "64,768,1,1")), 0);
  EXPECT_EQ(CountLayers(OneTap("1,64,7,7", "128,64,1,1")), 0);
  EXPECT_EQ(CountLayers(OneTap("16,128,28,28", "512,128,3,3")), 0);
  EXPECT_EQ(CountLayers(OneTap(kInput, kOneTapFilter), kA100), 0);
  EXPECT_EQ(CountLayers(OneTap(kInput, kOneTapFilter,
                               "y = group_norm(c, num_groups=32)")),
            0);
}

TEST(LaidLinesTest, ConvolutionsOfOneInputShareThem) {
  EXPECT_EQ(CountLayers("grade tf32\ninput x: f32[16,768,14,14]\n"
                        "param w: f32[3072,768,1,1]\n"
                        "param v: f32[3072,768,1,1]\na = conv2d(x, w)\n"
                        "s = silu(a)\nb = conv2d(x, v)\ny = mul(s, b)\n"
                        "output y\n"),
            1);
}

TEST(LaidLinesTest, AConvolutionWaitsForThem) {
  const Schedule schedule = Fastest(OneTap(kInput, kOneTapFilter));
  ASSERT_EQ(schedule.kernels.size(), 3);
  const Kernel& layer = schedule.kernels[1];
  const Kernel& conv = schedule.kernels[2];
  EXPECT_TRUE(layer.lays());
  EXPECT_FALSE(layer.computes());
  EXPECT_TRUE(conv.overlaps);
  EXPECT_FALSE(conv.fetches_early);
  ASSERT_TRUE(layer.laid && conv.laid);
  EXPECT_EQ(*layer.laid, *conv.laid);
  constexpr int64_t kPixels = 16 * 200;  // rows of 196, filled up
  constexpr int64_t kLaid = kPixels * (768 * 2 + 4);
  EXPECT_EQ(conv.conv->laid_lines().bytes(), kLaid);
  EXPECT_GE(schedule.workspace_bytes, kLaid);
  EXPECT_EQ(BytesWritten(schedule, layer), kLaid);
  EXPECT_EQ(BytesRead(schedule, layer), int64_t{16} * 768 * 196 * 4);
  EXPECT_EQ(BytesRead(schedule, conv), kLaid + conv.conv->packed_bytes());
}

TEST(LaidLinesTest, AResidualOfTheInputIsReadAsItIs) {
  const Schedule schedule =
      Fastest(OneTap("16,1536,14,14", "1536,1536,1,1", "y = add(c, x)"));
  const Kernel& conv = schedule.kernels.back();
  ASSERT_TRUE(conv.TakesLaidLines());
  EXPECT_EQ(BytesRead(schedule, conv), conv.conv->laid_lines().bytes() +
                                           conv.conv->packed_bytes() +
                                           int64_t{16} * 1536 * 196 * 4);
}

TEST(LaidLinesTest, AClusterSharesManyChannels) {
  const auto cluster_of = [](const std::string& text) {
    const Schedule schedule = Fastest(text);
    return MakeKernelSpec(schedule, schedule.kernels[1])
        .entries.front()
        .cluster[0];
  };
  EXPECT_EQ(cluster_of(OneTap(kInput, kOneTapFilter)), 4);
  EXPECT_EQ(cluster_of(OneTap("16,3072,14,14", "1536,3072,1,1")), 8);
}

TEST(LaidLinesTest, ExplainTells) {
  const CanonicalPlan plan =
      *Canonicalize(*ParsePlanText(OneTap(kInput, kOneTapFilter)));
  const ScheduleReport report = ReportSchedules(plan, kH100);
  const std::vector<KernelReport>& kernels = report.variants.front().kernels;
  ASSERT_EQ(kernels.size(), 3);
  EXPECT_EQ(kernels[1].symbol, "kiln_lay_lines");
  EXPECT_THAT(kernels[1].why, HasSubstr("halves with a scale for each pixel"));
  EXPECT_THAT(kernels[1].computes.front(), HasSubstr("lays down the input"));
  EXPECT_THAT(
      report.variants.front().rewrites,
      Contains(HasSubstr("taken as 1 x 196, which tiles share better")));
  EXPECT_THAT(kernels[2].candidates.front().kind,
              HasSubstr("channels by laid lines"));
}

}  // namespace
}  // namespace kiln
