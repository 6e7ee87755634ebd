// Results that a convolution of one tap leaves as lines for the next. Prevents
// that f32 numbers go to memory between two such convolutions where halves
// would do, lines that somebody else reads as numbers, scales that nobody
// chooses, and memory that is taken for something else too early.
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

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two convolutions with `ops` between them, from c to g.
std::string Pair(const std::string& ops = "g = gelu(c)",
                 const std::string& rest = "output y",
                 const std::string& grade = "tf32",
                 const std::string& pixels = "14,14") {
  return fmt::format(
      "grade {0}\ninput x: f32[16,768,{1}]\nparam w: f32[3072,768,1,1]\n"
      "param b: f32[3072]\nparam s: f32[3072,1,1]\n"
      "param v: f32[768,3072,1,1]\nc = conv2d(x, w, b)\n{2}\n"
      "y = conv2d(g, v)\n{3}\n",
      grade, pixels, ops, rest);
}

int CountLaid(const std::string& text, const Target& target = kH100) {
  const Schedule schedule = Fastest(text, target);
  return static_cast<int>(std::count_if(
      schedule.kernels.begin(), schedule.kernels.end(),
      [](const Kernel& kernel) { return kernel.laid_results.has_value(); }));
}

TEST(LaidResultsTest, TheNextConvolutionTakesThem) {
  for (const char* grade : {"fp32", "tf32"}) {
    EXPECT_THAT(
        SourceFilesOf(Fastest(Pair("g = gelu(c)", "output y", grade))),
        ElementsAre("pack_halves.cu", "bound_results.cu", "lay_lines.cu",
                    "conv_wgmma.cu", "pack_halves.cu", "conv_wgmma.cu"))
        << grade;
  }
}

TEST(LaidResultsTest, AllThatIsBoundedMayLieBetween) {
  for (const char* ops :
       {"g = relu(c)", "d = mul(c, s)\ne = add(d, 0.5)\ng = silu(e)",
        "d = sub(1.0, c)\ng = tanh(d)",
        "d = div(c, 3.0)\ng = clamp(d, min=0)"}) {
    EXPECT_EQ(CountLaid(Pair(ops)), 2) << ops;
  }
}

TEST(LaidResultsTest, NothingElseDoes) {
  EXPECT_EQ(CountLaid(Pair("g = exp(c)")), 0) << "without a bound";
  EXPECT_EQ(CountLaid(Pair("d = mul(c, c)\ng = add(d, 1.0)")), 0)
      << "bounded by no step";
  EXPECT_EQ(CountLaid(Pair("g = gelu(c)", "output y\noutput g")), 0)
      << "also an output";
  EXPECT_EQ(CountLaid(Pair("g = gelu(c)",
                           "m = mean(g, dim=[2,3])\noutput y\noutput m")),
            0)
      << "another kernel reads numbers";
  EXPECT_EQ(CountLaid(Pair("g = gelu(c)", "output y", "tf32", "7,7")), 0)
      << "no pairs of neighbours";
  EXPECT_EQ(CountLaid(Pair(), kA100), 0);
  std::string inputs = Pair();
  inputs.replace(inputs.find("param w"), 5, "input");
  EXPECT_EQ(CountLaid(inputs), 0) << "bounded anew at each launch";
  std::string halves = Pair();
  for (size_t at = 0; (at = halves.find("f32[", at)) != std::string::npos;) {
    halves.replace(at, 3, "f16");
  }
  EXPECT_EQ(CountLaid(halves), 0) << "multiplied as they are";
}

TEST(LaidResultsTest, OfAChainEveryOther) {
  const Schedule schedule = Fastest(
      "grade tf32\ninput x: f32[16,768,16,16]\nparam u: f32[2048,768,1,1]\n"
      "param v: f32[2048,2048,1,1]\nparam w: f32[768,2048,1,1]\n"
      "a = conv2d(x, u)\nb = relu(a)\nc = conv2d(b, v)\nd = relu(c)\n"
      "y = conv2d(d, w)\noutput y\n");
  const auto laid =
      std::count_if(schedule.kernels.begin(), schedule.kernels.end(),
                    [](const Kernel& kernel) { return kernel.LaysResults(); });
  EXPECT_EQ(laid, 1) << "a scale is chosen by what a kernel has laid down";
}

TEST(LaidResultsTest, TwoConvolutionsMayTakeThem) {
  EXPECT_EQ(CountLaid(Pair("g = gelu(c)",
                           "z = conv2d(g, v)\noutput y\n"
                           "output z")),
            2);
}

TEST(LaidResultsTest, KernelsFindThem) {
  const Schedule schedule = Fastest(Pair());
  ASSERT_EQ(schedule.kernels.size(), 6);
  const Kernel& bounder = schedule.kernels[1];
  const Kernel& layer = schedule.kernels[2];
  const Kernel& first = schedule.kernels[3];
  const Kernel& second = schedule.kernels[5];
  EXPECT_TRUE(bounder.bounds_results());
  EXPECT_TRUE(bounder.prepares);
  EXPECT_EQ(layer.bounds, bounder.bounds);
  ASSERT_TRUE(first.laid_results);
  EXPECT_EQ(layer.laid_results, first.laid_results);
  EXPECT_EQ(second.laid, first.laid_results);
  EXPECT_NE(first.laid, first.laid_results);
  EXPECT_FALSE(second.fetches_early);
  EXPECT_EQ(schedule.lowered.nodes[second.group.anchor].image,
            schedule.lowered.nodes[first.group.anchor].image);
  // Rows of 196 pixels, filled up; a factor for each.
  constexpr int64_t kLaid = int64_t{16} * 200 * (3072 * 2 + 4);
  constexpr int64_t kPixels = int64_t{16} * 200;
  EXPECT_EQ(BytesWritten(schedule, first), kLaid - kPixels * 4);
  EXPECT_EQ(BytesWritten(schedule, layer),
            first.conv->laid_lines().bytes() + kPixels * 6);
  EXPECT_EQ(BytesRead(schedule, second), kLaid + second.conv->packed_bytes());
  // Both inputs as lines, apart from each other.
  EXPECT_GE(schedule.workspace_bytes, kLaid + first.conv->laid_lines().bytes());
}

TEST(LaidResultsTest, ExplainTells) {
  const CanonicalPlan plan = *Canonicalize(*ParsePlanText(Pair()));
  const ScheduleReport report = ReportSchedules(plan, kH100);
  const std::vector<KernelReport>& kernels = report.variants.front().kernels;
  ASSERT_EQ(kernels.size(), 6);
  EXPECT_EQ(kernels[1].symbol, "kiln_bound_results");
  EXPECT_TRUE(kernels[1].prepares);
  EXPECT_THAT(kernels[1].why, HasSubstr("how large results can be"));
  EXPECT_THAT(kernels[3].why, HasSubstr("as the next convolution takes them"));
}

}  // namespace
}  // namespace kiln
