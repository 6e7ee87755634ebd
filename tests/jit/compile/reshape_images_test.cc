// Images of which convolutions of one tap take pixels as they lie. Prevents
// that 28 x 28 pixels of f16 are brought number by number, and that images are
// reshaped where what a convolution's kernel computes can tell.
#include "jit/compile/reshape_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/schedule_rewrites.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// A convolution of one tap, and ops of its result c.
std::string OneTap(const std::string& ops, const std::string& type = "f16",
                   int size = 28) {
  return fmt::format(
      "input x: {0}[8,512,{1},{1}]\ninput r: {0}[8,128,{1},{1}]\n"
      "input row: {0}[{1}]\nparam w: {0}[128,512,1,1]\n"
      "param k3: {0}[128,128,3,3]\nparam s: {0}[1,128,1,1]\n"
      "param g: {0}[128,1,1]\n"
      "c = conv2d(x, w)\n{2}\noutput y\n",
      type, size, ops);
}

// What the first convolution takes its images for; nothing if for what they
// are.
std::optional<Pair> ImageOf(const std::string& text,
                            const Target& target = kH100) {
  const Schedule schedule = Fastest(text, target);
  const std::vector<Node>& nodes = schedule.lowered.nodes;
  return std::find_if(nodes.begin(), nodes.end(),
                      [](const Node& node) { return node.IsConvolution(); })
      ->image;
}

bool TakesLines(const std::string& text) {
  const Schedule schedule = Fastest(text, kH100);
  return schedule.kernels.back().conv->takes_lines;
}

constexpr std::nullopt_t kAsTheyAre = std::nullopt;
constexpr Pair kReshaped = {2, 392};

TEST(ReshapeImagesTest, RowsBeginWhereAnAccessMay) {
  EXPECT_EQ(ImageOf(OneTap("y = relu(c)")), kReshaped);
  EXPECT_EQ(ImageOf(OneTap("y = relu(c)", "bf16")), kReshaped);
  EXPECT_EQ(ImageOf(OneTap("y = relu(c)", "f32")), kReshaped);
  EXPECT_TRUE(TakesLines(OneTap("y = relu(c)")));
}

TEST(ReshapeImagesTest, OpsOfWholeImagesCannotTell) {
  EXPECT_EQ(ImageOf(OneTap("z = sigmoid(c)\nt = mul(c, z)\n"
                           "y = mul(t, s)")),
            kReshaped);
  EXPECT_EQ(ImageOf(OneTap("y = mean(c, dim=[2,3])")), kReshaped);
  EXPECT_EQ(ImageOf(OneTap("y = add(c, r)")), kReshaped);
  EXPECT_EQ(ImageOf(OneTap("y = mul(c, g)")), kReshaped);
}

// 196 pixels begin where an access of 8 bytes may.
TEST(ReshapeImagesTest, ImagesOfFourPixelsAreOneRow) {
  const std::string text = OneTap("a = add(c, r)\ny = relu(a)", "bf16", 14);
  EXPECT_EQ(ImageOf(text), (Pair{1, 196}));
  EXPECT_TRUE(TakesLines(text));
}

TEST(ReshapeImagesTest, OthersCan) {
  for (const char* ops : {
           "y = add(c, row)",
           "y = max_pool2d(c, kernel_size=2)",
           "y = mean(c, dim=3)",
           "y = softmax(c, dim=2)",
           // They could not, but take no lines.
           "y = amax(c, dim=1, keepdim=true)",
           "y = group_norm(c, num_groups=8)",
       }) {
    EXPECT_EQ(ImageOf(OneTap(ops)), kAsTheyAre) << ops;
  }
  EXPECT_EQ(ImageOf("input x: f32[8,512,28,28]\nparam w: f32[64,512,1,1]\n"
                    "y = conv2d(x, w)\noutput y\n"),
            kAsTheyAre)
      << "too few channels for lines";
  EXPECT_EQ(ImageOf("input x: f32[32,256,14,14]\nparam w: f32[1024,256,1,1]\n"
                    "c = conv2d(x, w)\ny = relu(c)\noutput y\n"),
            kAsTheyAre)
      << "tiles of several rows are faster";
  EXPECT_EQ(ImageOf(OneTap("y = relu(c)"), kA100), kAsTheyAre);
}

// Numbers of pixels, or of images, that elements of others have in common.
TEST(ReshapeImagesTest, SoCanWhatIsBroadcastOverOthers) {
  for (const char* dims : {"8,1,28,28", "1,128,28,28", "1,1,28,28"}) {
    const std::string text = fmt::format("input p: f16[{}]\n", dims);
    EXPECT_EQ(ImageOf(text + OneTap("y = mul(c, p)")), kAsTheyAre) << dims;
  }
}

// Ops that are not behind the convolution, but share its kernel.
TEST(ReshapeImagesTest, WhatJoinsTheKernelCounts) {
  for (const char* ops :
       {"z = add(r, row)\ny = add(c, z)",
        "z = relu(r)\ny = add(c, z)\nq = mul(z, row)\noutput q",
        "z = mul(r, row)\ny = mul(c, z)"}) {
    const Schedule schedule = Fastest(OneTap(ops));
    for (const Kernel& kernel : schedule.kernels) {
      if (!kernel.conv || !kernel.computes()) continue;
      if (!schedule.lowered.nodes[kernel.group.anchor].image) continue;
      EXPECT_EQ(kernel.group.Nodes().size(), 1) << ops;
    }
  }
}

// What another kernel computes, before or behind.
TEST(ReshapeImagesTest, OtherKernelsDoNotCount) {
  EXPECT_EQ(ImageOf(OneTap("r1 = relu(c)\ny = conv2d(r1, k3, padding=1)")),
            kReshaped);
  const std::string norm =
      "input x: bf16[8,256,14,14]\nparam w: bf16[512,256,1,1]\n"
      "m = mean(x, dim=1, keepdim=true)\nd = sub(x, m)\n"
      "c = conv2d(d, w)\ny = gelu(c)\noutput y\n";
  EXPECT_EQ(ImageOf(norm), (Pair{1, 196}));
}

// 262 x 262 pixels would be rows of 4.
TEST(ReshapeImagesTest, RowsAreNotCutShort) {
  EXPECT_EQ(ImageOf(OneTap("y = relu(c)", "f16", 262)), kAsTheyAre);
}

// 32 columns are lines already, and of 49 pixels there are none.
TEST(ReshapeImagesTest, LeavesWhatSuitsOrNeverDoes) {
  EXPECT_EQ(ImageOf(OneTap("y = relu(c)", "f16", 32)), kAsTheyAre);
  EXPECT_TRUE(TakesLines(OneTap("y = relu(c)", "f16", 32)));
  EXPECT_EQ(ImageOf(OneTap("y = relu(c)", "f16", 7)), kAsTheyAre);
  EXPECT_FALSE(TakesLines(OneTap("y = relu(c)", "f16", 7)));
}

TEST(ReshapeImagesTest, ExplainSaysSo) {
  const CanonicalPlan plan =
      *Canonicalize(*ParsePlanText(OneTap("y = relu(c)")));
  EXPECT_THAT(RewritesOf(plan, MakeSchedules(plan, kH100).front()),
              Contains(HasSubstr("28 x 28 pixels taken as 2 x 392")));
}

// Of lines the products read the right matrix transposed.
TEST(ReshapeImagesTest, ProductsReadPixelsSideBySide) {
  const Schedule schedule = Fastest(OneTap("y = relu(c)"), kH100);
  const KernelSpec spec = MakeKernelSpec(schedule, schedule.kernels.back());
  EXPECT_THAT(spec.constants, Contains(HasSubstr("w, x, yes, 1, 1, 0, 1;")));
  EXPECT_THAT(spec.constants,
              Contains("static constexpr bool kTakesLines = true;"));
}

}  // namespace
}  // namespace kiln
