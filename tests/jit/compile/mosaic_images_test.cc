// Small images that lie side by side in wide ones. Prevents that a network's
// last layers, of 2 x 2 or 4 x 4 pixels, bring all weights for each image,
// which takes up to three times as long, and that an image's results depend on
// its neighbours.
#include "jit/compile/mosaic_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "fmt/format.h"
#include "jit/compile/mosaic_blocks.h"
#include "jit/compile/schedule_rewrites.h"
#include "jit/plan/op_table.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Small(int images, int channels, int size,
                  const std::string& last = "y = relu(c)",
                  const std::string& type = "f16") {
  return fmt::format(
      "input x: {0}[{1},{2},{3},{3}]\nparam w: {0}[{2},{2},3,3]\n"
      "c = conv2d(x, w, padding=1)\n{4}\noutput y\n",
      type, images, channels, size, last);
}

Schedule Moved(const std::string& text, ImageUse use) {
  return Fastest(text, kH100, {.images = static_cast<int>(use)});
}

const Node& NodeOf(const Schedule& schedule, NodeKind kind) {
  return *std::find_if(schedule.lowered.nodes.begin(),
                       schedule.lowered.nodes.end(),
                       [&](const Node& node) { return node.kind == kind; });
}

const Dims& ResultOf(const Schedule& schedule, NodeKind kind) {
  return schedule.lowered.values[NodeOf(schedule, kind).results[0]].desc.dims;
}

TEST(MosaicImagesTest, SmallImagesBecomeOne) {
  const Schedule schedule = Fastest(Small(128, 512, 4));
  EXPECT_THAT(
      SourceFilesOf(schedule),
      ElementsAre("mosaic.cu", "pack_halves.cu", "conv_wgmma.cu", "mosaic.cu"));
  EXPECT_THAT(ResultOf(schedule, NodeKind::kMosaic),
              ElementsAre(16, 512, 4, 8 * 5));
  EXPECT_THAT(ResultOf(schedule, NodeKind::kCut), ElementsAre(128, 512, 4, 4));
}

TEST(MosaicImagesTest, RowsAreAMultipleOfEight) {
  for (const int size : {1, 2, 3, 5, 6, 7}) {
    const Schedule schedule = Moved(Small(19, 64, size), ImageUse::kWherever);
    EXPECT_EQ(ResultOf(schedule, NodeKind::kMosaic)[3] % 8, 0) << size;
  }
}

TEST(MosaicImagesTest, OnlyWhereItPays) {
  EXPECT_THAT(SourceFilesOf(Small(128, 512, 8)), Not(Contains("mosaic.cu")));
  EXPECT_THAT(SourceFilesOf(Small(256, 128, 4)), Not(Contains("mosaic.cu")));
  EXPECT_THAT(SourceFilesOf(Small(4, 512, 4)), Not(Contains("mosaic.cu")));
  EXPECT_THAT(SourceFilesOf(Moved(Small(256, 128, 4), ImageUse::kWherever)),
              Contains("mosaic.cu"));
  EXPECT_THAT(SourceFilesOf(Moved(Small(128, 512, 4), ImageUse::kNowhere)),
              Not(Contains("mosaic.cu")));
  EXPECT_THAT(SourceFilesOf(Small(128, 512, 4), kA100),
              Not(Contains("mosaic.cu")))
      << "measured on Hopper alone";
}

// Of a stride by which few results are left of an image.
TEST(MosaicImagesTest, SoDoLargerOnesWithSmallResults) {
  const auto strided = [](int size, int stride) {
    return fmt::format(
        "input x: f16[32,768,{0},{0}]\nparam w: f16[1024,768,4,4]\n"
        "y = conv2d(x, w, stride={1}, padding=1)\noutput y\n",
        size, stride);
  };
  const Schedule schedule = Fastest(strided(13, 4));
  EXPECT_THAT(ResultOf(schedule, NodeKind::kMosaic),
              ElementsAre(4, 768, 13, 8 * 16));
  EXPECT_THAT(ResultOf(schedule, NodeKind::kCut), ElementsAre(32, 1024, 3, 3));
  EXPECT_THAT(SourceFilesOf(strided(13, 2)), Not(Contains("mosaic.cu")))
      << "36 results";
  EXPECT_THAT(SourceFilesOf(strided(17, 4)), Not(Contains("mosaic.cu")))
      << "289 pixels";
}

TEST(MosaicImagesTest, WhatReducesResultsReadsThemApart) {
  const Schedule schedule =
      Fastest(Small(128, 512, 4, "y = group_norm(c, num_groups=8)", "f32"));
  EXPECT_THAT(SourceFilesOf(schedule),
              ElementsAre("mosaic.cu", "pack_halves.cu", "conv_wgmma.cu",
                          "mosaic.cu", "row_warp.cu"));
}

std::vector<std::string> OpsBehind(const Schedule& schedule, size_t kernel) {
  std::vector<std::string> ops;
  for (const int node : schedule.kernels[kernel].group.epilogue) {
    ops.emplace_back(OpName(schedule.lowered.nodes[node].op));
  }
  return ops;
}

TEST(MosaicImagesTest, WhatNeedsNoImageIsComputedAndRoundedBeforeTheyAreCut) {
  const Schedule schedule = Fastest(
      "input x: f16[128,512,4,4]\nparam w: f16[512,512,3,3]\n"
      "param m: f16[512]\nparam v: f16[512]\nparam s: f16[512,1,1]\n"
      "c = conv2d(x, w, padding=1)\nn = batch_norm(c, m, v)\n"
      "a = mul(s, n)\ny = relu(a)\noutput y\n");
  EXPECT_THAT(OpsBehind(schedule, 2),
              ElementsAre("batch_norm", "mul", "relu", "cast"));
  EXPECT_THAT(OpsBehind(schedule, 3), IsEmpty());
  const LoweredPlan& plan = schedule.lowered;
  const int cut = ValueOf(NodeOf(schedule, NodeKind::kCut).operands[0]);
  EXPECT_EQ(plan.values[cut].desc.dtype, DataType::kF16);
  const int relu = ValueOf(plan.nodes[plan.values[cut].producer].operands[0]);
  EXPECT_EQ(plan.values[relu].exactness, Exactness::kHalf);
}

// What has another value for each image, or column, or is needed twice.
TEST(MosaicImagesTest, WhatNeedsAnImageIsComputedBehind) {
  for (const char* last : {"y = add(c, z)", "y = add(c, k)", "y = mul(c, o)",
                           "y = mul(c, c)", "y = softmax(c, dim=1)"}) {
    const Schedule schedule = Moved(
        fmt::format("input x: f16[128,64,4,4]\nparam w: f16[64,64,3,3]\n"
                    "input z: f16[128,64,4,4]\ninput k: f16[4]\n"
                    "input o: f16[128,64,1,1]\nc = conv2d(x, w, padding=1)\n"
                    "{}\noutput y\n",
                    last),
        ImageUse::kWherever);
    const Node& cut = NodeOf(schedule, NodeKind::kCut);
    EXPECT_EQ(cut.text, "v0 = cut(v0_wide)") << last;
  }
}

TEST(MosaicImagesTest, OutputsInFrontAreCut) {
  const Schedule schedule = Fastest(
      "input x: f16[128,512,4,4]\nparam w: f16[512,512,3,3]\n"
      "c = conv2d(x, w, padding=1)\ny = relu(c)\noutput c: f32\noutput y\n");
  EXPECT_EQ(NodeOf(schedule, NodeKind::kCut).text, "v0 = cut(v0_wide)");
  EXPECT_THAT(OpsBehind(schedule, 3), ElementsAre("relu"));
}

TEST(MosaicImagesTest, OpsInFrontAreComputedOnTheWay) {
  const std::string text =
      "input x: f16[128,512,4,4]\nparam w: f16[512,512,3,3]\n"
      "r = silu(x)\ny = conv2d(r, w, padding=1)\noutput y\n";
  const Schedule schedule = Fastest(text);
  EXPECT_EQ(SourceFilesOf(schedule).front(), "mosaic.cu");
  EXPECT_FALSE(schedule.kernels.front().group.prologue.empty());
}

TEST(MosaicImagesTest, ConvolutionsOfOneInputShareIt) {
  const std::string text =
      "input x: f16[128,512,4,4]\nparam v: f16[512,512,3,3]\n"
      "param w: f16[512,512,3,3]\na = conv2d(x, v, padding=1)\n"
      "b = conv2d(x, w, padding=1)\noutput a\noutput b\n";
  const Schedule schedule = Fastest(text);
  const auto count = [&](NodeKind kind) {
    const std::vector<Node>& nodes = schedule.lowered.nodes;
    return std::count_if(nodes.begin(), nodes.end(),
                         [&](const Node& node) { return node.kind == kind; });
  };
  EXPECT_EQ(count(NodeKind::kMosaic), 1);
  EXPECT_EQ(count(NodeKind::kCut), 2);
}

// Along an axis, of a mosaic of three images: the numbers of those images that
// each result depends on must be one's own.
class Dependence {
 public:
  Dependence(const Schedule& schedule, bool transposed)
      : conv_(std::get<ConvAttributes>(
            NodeOf(schedule,
                   transposed ? NodeKind::kConvTranspose2d : NodeKind::kConv2d)
                .attributes)),
        transposed_(transposed),
        images_(WindowsOf(schedule, NodeKind::kMosaic)),
        results_(WindowsOf(schedule, NodeKind::kCut)) {}

  bool IsOnesOwn(int64_t kernel) const {
    for (int64_t image = 0; image < 3; ++image) {
      for (int64_t o = 0; o < results_.kernel_size[1]; ++o) {
        const int64_t at = image * results_.stride[1] + o;
        for (int64_t tap = 0; tap < kernel; ++tap) {
          if (!IsOfOrNone(image, at, tap)) return false;
        }
      }
    }
    return true;
  }

 private:
  static const PoolAttributes& WindowsOf(const Schedule& schedule,
                                         NodeKind kind) {
    return std::get<PoolAttributes>(NodeOf(schedule, kind).attributes);
  }

  bool IsOfOrNone(int64_t image, int64_t at, int64_t tap) const {
    int64_t from = 0;
    if (transposed_) {
      from = at + conv_.padding[1] - tap * conv_.dilation[1];
      if (from % conv_.stride[1] != 0) return true;
      from /= conv_.stride[1];
    } else {
      from = at * conv_.stride[1] - conv_.padding[1] + tap * conv_.dilation[1];
    }
    const int64_t pitch = images_.stride[1];
    if (from < 0 || from >= 3 * pitch) return true;
    if (from % pitch >= images_.kernel_size[1]) return true;  // a zero
    return from / pitch == image;
  }

  const ConvAttributes& conv_;
  const bool transposed_;
  const PoolAttributes& images_;
  const PoolAttributes& results_;
};

struct Case {
  int size, kernel, stride, padding, dilation;
};

void ExpectOnesOwn(const Case& c, bool transposed,
                   const std::string& more = "") {
  const std::string text = fmt::format(
      "input x: f16[24,64,5,{0}]\nparam w: f16[64,64,1,{1}]\n"
      "y = {6}(x, w, stride=[1,{2}], padding=[0,{3}], dilation=[1,{4}]{5})\n"
      "output y\n",
      c.size, c.kernel, c.stride, c.padding, c.dilation, more,
      transposed ? "conv_transpose2d" : "conv2d");
  const Schedule schedule = Moved(text, ImageUse::kWherever);
  ASSERT_THAT(SourceFilesOf(schedule), Contains("mosaic.cu")) << text;
  EXPECT_TRUE(Dependence(schedule, transposed).IsOnesOwn(c.kernel)) << text;
}

TEST(MosaicImagesTest, NoResultDependsOnTwoImages) {
  for (const Case& c :
       {Case{4, 3, 1, 1, 1}, Case{4, 3, 1, 0, 1}, Case{4, 3, 2, 1, 1},
        Case{7, 3, 3, 2, 1}, Case{5, 5, 1, 4, 1}, Case{6, 2, 4, 0, 1},
        Case{8, 3, 2, 2, 3}, Case{2, 7, 1, 3, 1}}) {
    ExpectOnesOwn(c, false);
  }
}

TEST(MosaicImagesTest, NorDoThoseOfTransposedConvolutions) {
  for (const Case& c :
       {Case{4, 4, 2, 1, 1}, Case{4, 3, 1, 0, 1}, Case{4, 3, 2, 2, 1},
        Case{3, 5, 3, 0, 1}, Case{5, 3, 2, 0, 2}}) {
    ExpectOnesOwn(c, true);
  }
  ExpectOnesOwn({4, 3, 2, 1, 1}, true, ", output_padding=[0,1]");
}

TEST(MosaicImagesTest, BlocksHaveEveryImageOnce) {
  const Schedule schedule = Moved(Small(19, 40, 2), ImageUse::kWherever);
  for (const NodeKind kind : {NodeKind::kMosaic, NodeKind::kCut}) {
    const MosaicBlocks blocks =
        MosaicBlocksOf(schedule.lowered, NodeOf(schedule, kind));
    EXPECT_EQ(NodeOf(schedule, kind).across, 16);
    EXPECT_EQ(blocks.count, 2 * ((40 + blocks.channels - 1) / blocks.channels));
  }
}

// Of columns of zeros alone there are results, too: what lies behind the last
// image's is no image, though it is as wide as one.
TEST(MosaicImagesTest, ResultsBehindTheLastImageAreNone) {
  const Schedule schedule = Fastest(
      "input x: f16[128,512,2,2]\nparam w: f16[512,512,4,4]\n"
      "y = conv2d(x, w, stride=4, padding=2)\noutput y\n");
  const Node& cut = NodeOf(schedule, NodeKind::kCut);
  const auto& windows = std::get<PoolAttributes>(cut.attributes);
  const int64_t width =
      schedule.lowered.values[ValueOf(cut.operands[0])].desc.dims[3];
  EXPECT_EQ(cut.across, NodeOf(schedule, NodeKind::kMosaic).across);
  EXPECT_EQ(width, (cut.across + 1) * windows.stride[1]);
}

// Or accesses would not begin where their width asks for.
TEST(MosaicImagesTest, VectorsDivideWhatBlocksHave) {
  for (const auto& [channels, size, of_image] :
       {std::tuple{40, 2, 8}, {24, 3, 8}, {12, 3, 4}, {9, 3, 1}}) {
    const Schedule schedule =
        Moved(Small(19, channels, size), ImageUse::kWherever);
    const MosaicBlocks blocks =
        MosaicBlocksOf(schedule.lowered, NodeOf(schedule, NodeKind::kMosaic));
    EXPECT_EQ(blocks.ImageVector(8), of_image) << channels;
    EXPECT_EQ(blocks.ImageVector(4), std::min(of_image, 4)) << channels;
    EXPECT_EQ(blocks.WholeVector(8), 8) << channels;
  }
}

// Of results or distances so large that shared memory has not one channel's,
// which ptxas would refuse, and the plan with it.
TEST(MosaicImagesTest, WhatBlocksCannotKeepStaysApart) {
  for (const char* body :
       {"input x: f16[128,512,4,4]\nparam w: f16[512,64,16,16]\n"
        "y = conv_transpose2d(x, w, stride=16)\noutput y\n",
        "input x: f16[64,64,1,1]\nparam w: f16[64,64,3,3]\n"
        "y = conv2d(x, w, padding=64)\noutput y\n",
        "input x: f16[64,64,1,1]\nparam w: f16[64,64,3,3]\n"
        "y = conv2d(x, w, padding=536870912, stride=1073741824)\noutput y\n"}) {
    EXPECT_THAT(SourceFilesOf(Moved(body, ImageUse::kWherever)),
                Not(Contains("mosaic.cu")))
        << body;
  }
}

TEST(MosaicImagesTest, ExplainSaysSo) {
  const CanonicalPlan plan = *Canonicalize(*ParsePlanText(Small(128, 512, 4)));
  EXPECT_THAT(RewritesOf(plan, MakeSchedules(plan, kH100).front()),
              Contains(HasSubstr("i0_mosaic = mosaic(i0)")));
}

TEST(MosaicImagesTest, TuningTriesTheOtherWay) {
  const auto tries = [](const std::string& text, ImageUse use) {
    const CanonicalPlan plan = *Canonicalize(*ParsePlanText(text));
    const std::vector<Tuning> all = Alternatives(plan, kH100, 8);
    return std::count(all.begin(), all.end(),
                      Tuning{.images = static_cast<int>(use)});
  };
  EXPECT_EQ(tries(Small(128, 512, 4), ImageUse::kNowhere), 1);
  EXPECT_EQ(tries(Small(128, 512, 4), ImageUse::kWherever), 0);
  EXPECT_EQ(tries(Small(256, 128, 4), ImageUse::kWherever), 1);
  EXPECT_EQ(tries(Small(256, 128, 4), ImageUse::kNowhere), 0);
}

// A generator's first layer: both phases of a column share its patch.
TEST(MosaicImagesTest, TilesOfATransposedMosaicHaveBothPhases) {
  const Schedule schedule = Fastest(
      "input x: f16[128,1024,4,4]\nparam w: f16[1024,512,4,4]\n"
      "c = conv_transpose2d(x, w, stride=2, padding=1)\ny = relu(c)\n"
      "output y\n");
  const auto conv = std::ranges::find_if(
      schedule.kernels, [](const Kernel& k) { return k.conv.has_value(); });
  ASSERT_NE(conv, schedule.kernels.end());
  EXPECT_TRUE(conv->conv->merges_phases());
  EXPECT_TRUE(conv->conv->channel_rows);
}

}  // namespace
}  // namespace kiln
