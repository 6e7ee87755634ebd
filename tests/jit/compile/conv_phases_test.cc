// How convolutions are cut or rewritten before tiles are chosen: phases of
// transposed and of dilated ones, patches, and operands that the plan rounds.
// Prevents that such a convolution silently takes a path that is several times
// slower.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fmt/format.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/schedule_rewrites.h"
#include "jit/compile/specialize.h"
#include "jit/compile/window_geometry.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

ConvGeometry GeometryOf(const std::string& text) {
  for (const Kernel& kernel : Fastest(text).kernels) {
    if (kernel.conv && kernel.computes()) return *kernel.conv;
  }
  ADD_FAILURE() << "no kernel on tensor cores: " << text;
  return {};
}

std::string Transposed(int kernel, int stride, int channels = 64) {
  return fmt::format(
      "input x: f32[2,{0},32,32]\nparam w: f32[{0},64,{1},{1}]\n"
      "y = conv_transpose2d(x, w, stride={2})\noutput y\n",
      channels, kernel, stride);
}

std::string Dilated(int dilation, const std::string& more = "") {
  return fmt::format(
      "input x: f16[2,256,64,64]\nparam w: f16[256,256,3,3]\n"
      "y = conv2d(x, w, padding={0}, dilation={0}{1})\noutput y\n",
      dilation, more);
}

std::string Patches(const std::string& options, const std::string& more = "") {
  return "input x: f16[8,3,224,224]\nparam w: f16[256,3,16,16]\n" + more +
         "y = conv2d(x, w" + options + ")\noutput y\n";
}

TEST(ConvPhasesTest, PhasesWithFewerTapsHaveGuardedProducts) {
  EXPECT_TRUE(GeometryOf(Transposed(3, 2)).has_groups());
  const std::string unit = LastUnitOf(Fastest(Transposed(3, 2)));
  for (const char* guard : {"@row wgmma", "@column wgmma", "@both wgmma"}) {
    EXPECT_THAT(unit, HasSubstr(guard));
  }
  EXPECT_THAT(LastUnitOf(Fastest(Transposed(4, 2))), Not(HasSubstr("@row")));
}

// Of whichever axis.
TEST(ConvPhasesTest, WindowsBehindPhasesGoToWarps) {
  const std::string input =
      "input x: f32[2,32,16,16]\nparam w: f32[32,64,3,3]\n";
  for (const auto& [stride, window] :
       {std::pair("[1,2]", "[2,1]"), {"[2,1]", "[1,2]"}, {"[2,2]", "[2,2]"}}) {
    EXPECT_FALSE(
        GeometryOf(input + fmt::format("c = conv_transpose2d(x, w, stride={})\n"
                                       "y = max_pool2d(c, kernel_size={})\n"
                                       "output y\n",
                                       stride, window))
            .has_groups())
        << stride << window;
  }
}

// A guarded product has channels of one tap, of eight channels and a half of
// zeros.
TEST(ConvPhasesTest, ProductsOfUnevenPhasesHaveSixteenChannels) {
  for (const int channels : {8, 24}) {
    const ConvGeometry g = GeometryOf(Transposed(3, 2, channels));
    EXPECT_TRUE(g.has_groups()) << channels;
    EXPECT_EQ(g.chunk, 16) << channels;
  }
}

// Filters smaller than their stride.
TEST(ConvPhasesTest, PhasesMayLackAllTaps) {
  for (const auto& [kernel, stride] :
       {std::pair(2, 3), {2, 4}, {1, 2}, {3, 5}}) {
    EXPECT_TRUE(GeometryOf(Transposed(kernel, stride)).has_groups())
        << kernel << " of " << stride;
  }
}

std::string Upsampled(const std::string& input, const std::string& weight,
                      const std::string& options, const std::string& rest) {
  return fmt::format(
      "input x: f32[{}]\nparam w: f32[{}]\nc = conv_transpose2d(x, w{})\n"
      "{}\noutput y\n",
      input, weight, options, rest);
}

// Else each store fills one half of each sector of memory.
TEST(ConvPhasesTest, TilesHaveBothPhasesOfTheirColumns) {
  const std::string norm = "g = gelu(c)\ny = group_norm(g, num_groups=8)";
  for (const std::string& rest : {std::string("y = relu(c)"), norm}) {
    const ConvGeometry g = GeometryOf(
        Upsampled("8,64,64,64", "64,64,3,3", ", stride=2, padding=1", rest));
    EXPECT_TRUE(g.merges_phases()) << rest;
    EXPECT_EQ(g.tile_phases(), 2);
    EXPECT_EQ(g.phase_shift(), 1) << "the second phase begins a column later";
    EXPECT_EQ(g.halo(1), 2);
    EXPECT_EQ(g.blocks() * 2, 8 * 4 * g.strips() * g.tiles_across());
    EXPECT_EQ(g.packed_bytes(), GeometryOf(Transposed(3, 2)).packed_bytes())
        << "weights lie as for tiles of one phase";
  }
  EXPECT_EQ(GeometryOf(Upsampled("8,64,64,64", "64,64,2,2", ", stride=2",
                                 "y = relu(c)"))
                .phase_shift(),
            0);
}

// Then the input is brought once, not for each row of phases.
TEST(ConvPhasesTest, TilesHaveAllPhasesOfOneTap) {
  const auto geometry_of = [](const std::string& rest,
                              const std::string& options = ", stride=2") {
    return GeometryOf("grade tf32\n" +
                      Upsampled("8,64,64,64", "64,64,2,2", options, rest));
  };
  const ConvGeometry g = geometry_of("y = relu(c)");
  EXPECT_TRUE(g.merges_rows && g.stores_sums);
  EXPECT_EQ(g.tile_phases(), 4);
  EXPECT_EQ(g.tiles_m, 4);
  EXPECT_EQ(g.phase_shift(), 0);
  EXPECT_EQ(g.blocks(), 8 * g.strips() * g.tiles_across());
  for (const char* rest :
       {"y = group_norm(c, num_groups=8)", "y = mul(c, c)\noutput c"}) {
    EXPECT_FALSE(geometry_of(rest).merges_rows) << rest;
  }
  const std::string odd = ", stride=2, output_padding=1";
  EXPECT_FALSE(geometry_of("y = relu(c)", odd).merges_rows);
}

// Results without a pixel of the input would be scaled by what nobody wrote.
TEST(ConvPhasesTest, LinesAreLaidOfPixelsOfAllResults) {
  const auto lays_lines = [](const std::string& options) {
    return GeometryOf(
               "grade tf32\ninput x: f32[4,1024,32,32]\n"
               "param w: f32[1024,512,2,2]\n"
               "y = conv_transpose2d(x, w, stride=2" +
               options + ")\noutput y\n")
        .lays_lines;
  };
  EXPECT_TRUE(lays_lines(""));
  for (const char* padding : {"[1,1]", "[0,1]", "[1,0]"}) {
    EXPECT_FALSE(lays_lines(std::string(", output_padding=") + padding))
        << padding;
  }
}

// Of an even number of them, or a part that begins at one column of the patch.
// In two groups, for phases of one are channels (channel_phases_test.cc).
TEST(ConvPhasesTest, TilesHaveSeveralPhasesOfLargeStrides) {
  const auto phases_of = [](const std::string& type, const std::string& weight,
                            const std::string& options) {
    return GeometryOf("input x: " + type + "[16,256,1,1024]\nparam w: " + type +
                      weight + "\nc = conv_transpose2d(x, w, groups=2, " +
                      options + ")\ny = relu(c)\noutput y\n")
        .column_phases;
  };
  const std::string by_eight = "stride=[1,8], padding=[0,4]";
  EXPECT_EQ(phases_of("f16", "[256,128,1,16]", by_eight), 8);
  EXPECT_EQ(phases_of("f32", "[256,128,1,16]", by_eight), 4) << "registers";
  EXPECT_EQ(phases_of("f16", "[256,128,1,8]", "stride=[1,4], padding=[0,2]"),
            4);
  EXPECT_EQ(phases_of("f16", "[256,128,1,6]",
                      "stride=[1,3], padding=[0,1], output_padding=[0,1]"),
            1);
}

TEST(ConvPhasesTest, OtherTilesHaveOnePhase) {
  const std::vector<std::string> texts = {
      Upsampled("8,64,64,64", "64,64,3,3", ", stride=[2,1]", "y = relu(c)"),
      Upsampled("8,64,64,64", "64,64,3,3", ", stride=3", "y = relu(c)"),
      Upsampled("8,64,64,64", "64,64,4,4", ", stride=2",
                "y = sum(c, dim=[2,3])"),
      Upsampled("8,64,64,64", "64,64,4,4", ", stride=2", "y = mean(c, dim=1)"),
  };
  for (const std::string& text : texts) {
    EXPECT_FALSE(GeometryOf(text).merges_phases()) << text;
  }
}

TEST(ConvPhasesTest, RowsOfAWideDilationMakePhases) {
  const ConvGeometry g = GeometryOf(Dilated(12));
  EXPECT_TRUE(g.interleaves);
  EXPECT_EQ(g.phases(0), 12);
  EXPECT_EQ(g.phases(1), 1);
  EXPECT_EQ(g.halo(0), 2);
  EXPECT_EQ(g.halo(1), 24);
  // All phases have the same weights.
  ConvGeometry together = g;
  together.interleaves = false;
  EXPECT_EQ(g.packed_bytes(), together.packed_bytes());
}

TEST(ConvPhasesTest, ExplainSaysSo) {
  const auto rewrites = [](const std::string& text) {
    const CanonicalPlan plan = *Canonicalize(*ParsePlanText(text));
    return RewritesOf(plan, MakeSchedules(plan, kH100).front());
  };
  EXPECT_THAT(rewrites(Dilated(12)),
              Contains(HasSubstr("rows of the image in 12 phases")));
  EXPECT_THAT(rewrites(Patches(", stride=16")),
              Contains(HasSubstr("unfold(i0, kernel_size=[16, 16])")));
}

TEST(ConvPhasesTest, WindowsAndStridesKeepDilatedRowsTogether) {
  EXPECT_FALSE(GeometryOf(Dilated(12, ", stride=2")).interleaves);
  EXPECT_FALSE(GeometryOf("input x: f16[2,64,64,64]\nparam w: f16[64,64,3,3]\n"
                          "c = conv2d(x, w, padding=4, dilation=4)\n"
                          "y = max_pool2d(c, kernel_size=2)\noutput y\n")
                   .interleaves);
}

TEST(UnfoldPatchesTest, MakesOneByOneConvolutionsOfPatches) {
  for (const Target& target : {kH100, kA100}) {
    EXPECT_EQ(SourceFilesOf(Patches(", stride=16"), target)[0], "unfold.cu");
  }
  const ConvGeometry g = GeometryOf(Patches(", stride=16"));
  EXPECT_TRUE(g.has_groups());
  EXPECT_EQ(g.problem.group_inputs(), 768);
  EXPECT_EQ(g.problem.taps(), 1);
  const Schedule schedule = Fastest(Patches(", stride=16"));
  EXPECT_GT(schedule.prepared_bytes, 0) << "weights are packed once";
}

TEST(UnfoldPatchesTest, TakesSmallPatchesOfFewChannelsWhereItPays) {
  const auto begins_with = [](const std::string& type, int channels,
                              const std::string& kernel, int filters) {
    return SourceFilesOf(fmt::format("input x: {0}[8,{1},60,64]\n"
                                     "param w: {0}[{2},{1},{3},{3}]\n"
                                     "y = conv2d(x, w, stride={3})\noutput y\n",
                                     type, channels, filters, kernel),
                         kH100)[0];
  };
  for (const char* type : {"f16", "bf16"}) {
    EXPECT_EQ(begins_with(type, 3, "4", 160), "unfold.cu");
    EXPECT_EQ(begins_with(type, 4, "2", 160), "unfold.cu");
    EXPECT_NE(begins_with(type, 3, "5", 160), "unfold.cu") << "no vectors";
    EXPECT_NE(begins_with(type, 16, "4", 96), "unfold.cu") << "many channels";
  }
  const Target ampere = {"sm_80", 108};
  EXPECT_NE(SourceFilesOf("input x: f16[8,3,60,64]\nparam w: f16[96,3,4,4]\n"
                          "y = conv2d(x, w, stride=4)\noutput y\n",
                          ampere)[0],
            "unfold.cu");
  EXPECT_EQ(begins_with("f32", 4, "2", 128), "unfold.cu");
  EXPECT_NE(begins_with("f32", 4, "2", 120), "unfold.cu");
}

TEST(UnfoldPatchesTest, MovesWhatDividesRowsOfPatchAndImageAtOnce) {
  const auto vector = [](DataType type, int64_t patch, int64_t width) {
    return UnfoldVector({8, patch}, TensorDesc{type, {1, 3, 64, width}});
  };
  EXPECT_EQ(vector(DataType::kF16, 16, 224), 8);
  EXPECT_EQ(vector(DataType::kF32, 16, 224), 4);
  EXPECT_EQ(vector(DataType::kBF16, 14, 224), 2);
  EXPECT_EQ(vector(DataType::kF16, 12, 220), 4);
  EXPECT_EQ(vector(DataType::kF16, 8, 37), 1);
  EXPECT_EQ(vector(DataType::kF16, 5, 40), 1);
}

TEST(ConvPhasesTest, WideImagesHaveTilesNarrowEnoughForTallWindows) {
  const ConvGeometry g = GeometryOf(
      "input x: f32[1,8,1024,1024]\nparam w: f32[64,8,3,3]\n"
      "c = conv2d(x, w)\nn = group_norm(c, num_groups=16)\n"
      "y = max_pool2d(n, kernel_size=4)\noutput y\n");
  EXPECT_TRUE(g.channel_rows);
  EXPECT_GT(g.tiles_across(), 12);
}

TEST(UnfoldPatchesTest, LeavesOthersAsTheyAre) {
  const Target turing = {"sm_75", 40};
  EXPECT_NE(SourceFilesOf(Patches(", stride=16"), turing)[0], "unfold.cu");
  for (const char* options :
       {", stride=8", ", stride=16, padding=1", ", stride=[16,8]"}) {
    EXPECT_NE(SourceFilesOf(Patches(options), kH100)[0], "unfold.cu")
        << options;
  }
  const std::string computed =
      "input x: f16[8,3,224,224]\nparam v: f16[256,3,16,16]\nw = abs(v)\n"
      "y = conv2d(x, w, stride=16)\noutput y\n";
  EXPECT_THAT(SourceFilesOf(computed, kH100), Not(Contains("unfold.cu")));
}

TEST(RoundedOperandsTest, AreStoredAndMultipliedIn16Bits) {
  const std::string text =
      "input x: f16[2,64,28,28]\nparam w: f16[64,64,3,3]\n"
      "n = group_norm(x, num_groups=8)\ns = silu(n)\n"
      "y = conv2d(s, w, padding=1)\noutput y\n";
  EXPECT_TRUE(GeometryOf(text).problem.takes_as_stored());
  EXPECT_EQ(Fastest(text).workspace_bytes, 2 * 64 * 28 * 28 * 2);
}

// Both have the type, so one tensor in memory is enough.
TEST(RoundedOperandsTest, AreReadFromTheOutputThatHoldsThem) {
  EXPECT_EQ(Fastest("input x: f16[2,64,28,28]\nparam w: f16[64,64,3,3]\n"
                    "s = silu(x)\ny = conv2d(s, w, padding=1)\noutput y\n"
                    "output s\n")
                .workspace_bytes,
            0);
}

}  // namespace
}  // namespace kiln
