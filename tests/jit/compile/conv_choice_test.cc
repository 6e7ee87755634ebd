// Properties of every tile that is chosen, over convolutions of many shapes.
#include "jit/compile/conv_choice.h"

#include <gtest/gtest.h>

#include "jit/compile/conv_cost.h"

namespace kiln {
namespace {

const Target kTargets[] = {{"sm_80", 108}, {"sm_89", 142}, {"sm_90a", 132}};

ConvProblem Problem(int64_t n, int64_t channels, int64_t outputs, int64_t size,
                    int64_t kernel, int64_t stride, int64_t padding) {
  ConvProblem problem;
  problem.input = {n, channels, size, size};
  const int64_t output = (size + 2 * padding - kernel) / stride + 1;
  problem.output = {n, outputs, output, output};
  problem.kernel = {kernel, kernel};
  problem.stride = {stride, stride};
  problem.padding = {padding, padding};
  return problem;
}

void ExpectSound(const ConvGeometry& g, const Target& target) {
  const ConvProblem& p = g.problem;
  EXPECT_LE(g.shared_words() * 4 * g.resident_blocks, MaxSharedBytes(target));
  EXPECT_LE(g.threads(), 1024);
  EXPECT_GE(g.tiles_across() * g.tile_w, p.output[3]);
  EXPECT_GE(g.strips() * g.tiles_per_block * g.tile_h, p.output[2]);
  EXPECT_GE(g.channel_blocks() * g.block_channels(), p.group_outputs());
  EXPECT_GE(g.chunks() * g.chunk, p.group_inputs());
  if (g.warpgroups > 0) {
    EXPECT_EQ(target.arch, "sm_90a");
    EXPECT_EQ(p.stride, (Pair{1, 1}));
    EXPECT_LE(g.tile_h * g.patch_width(), g.rows());
    EXPECT_EQ(g.chunk * p.taps() % 8, 0);
  } else {
    EXPECT_EQ(int64_t{g.tile_h} * g.tile_w, g.rows());
  }
  if (g.copies_four) {
    EXPECT_EQ(p.input[3] % 4, 0);
    EXPECT_EQ((p.padding[1] + g.lead()) % 4, 0);
    EXPECT_EQ(g.patch_width() % 4, 0);
  }
}

TEST(ConvChoiceTest, EveryTileCoversItsConvolutionAndFits) {
  for (const Target& target : kTargets) {
    for (const Grade grade : {Grade::kFp32, Grade::kTf32}) {
      for (const int64_t channels : {1, 3, 8, 20, 64, 512}) {
        for (const int64_t outputs : {1, 13, 64, 240}) {
          for (const int64_t kernel : {1, 3, 5, 7}) {
            for (const int64_t stride : {1, 2}) {
              const ConvProblem problem =
                  Problem(4, channels, outputs, 30, kernel, stride, kernel / 2);
              const auto geometry =
                  ChooseConvGeometry(problem, {}, {grade, target, false});
              ASSERT_TRUE(geometry.has_value())
                  << channels << " " << outputs << " " << kernel;
              ExpectSound(*geometry, target);
            }
          }
        }
      }
    }
  }
}

TEST(ConvChoiceTest, DemandsAreMet) {
  const ConvProblem problem = Problem(128, 8, 64, 128, 3, 1, 0);
  ConvDemands demands;
  demands.window = {4, 4};
  demands.group_channels = 4;
  demands.all_channels_in_a_block = true;
  for (const Target& target : kTargets) {
    const auto geometry =
        ChooseConvGeometry(problem, demands, {Grade::kFp32, target, false});
    ASSERT_TRUE(geometry.has_value());
    ExpectSound(*geometry, target);
    EXPECT_EQ(geometry->tile_h % 4, 0);
    EXPECT_TRUE(geometry->tile_w % 4 == 0 || geometry->tiles_across() == 1);
    EXPECT_EQ(geometry->channel_blocks(), 1);
  }
}

TEST(ConvChoiceTest, GradeDecidesWhetherOperandsAreSplit) {
  ConvProblem problem = Problem(8, 64, 64, 56, 3, 1, 1);
  const Target h100 = {"sm_90a", 132};
  EXPECT_TRUE(ChooseConvGeometry(problem, {}, {Grade::kFp32, h100, false})
                  ->splits_input);
  EXPECT_FALSE(ChooseConvGeometry(problem, {}, {Grade::kTf32, h100, false})
                   ->splits_input);
  // Half precision is exact in TF32.
  problem.input_type = problem.weight_type = DataType::kF16;
  const auto half =
      ChooseConvGeometry(problem, {}, {Grade::kFp32, h100, false});
  EXPECT_FALSE(half->splits_input || half->splits_weight);
}

TEST(ConvChoiceTest, AmpleRegistersMeanFewerSums) {
  const ConvProblem problem = Problem(128, 8, 64, 128, 3, 1, 0);
  const Target h100 = {"sm_90a", 132};
  const auto tight =
      ChooseConvGeometry(problem, {}, {Grade::kTf32, h100, false});
  const auto ample =
      ChooseConvGeometry(problem, {}, {Grade::kTf32, h100, true});
  EXPECT_LE(ample->tiles_m * ample->tiles_n, tight->tiles_m * tight->tiles_n);
}

TEST(ConvCostTest, TwiceTheImagesCostMore) {
  const Target h100 = {"sm_90a", 132};
  auto geometry = *ChooseConvGeometry(Problem(128, 8, 64, 128, 3, 1, 0), {},
                                      {Grade::kFp32, h100, false});
  const double once = ConvCycles(geometry, 132);
  geometry.problem.input[0] = geometry.problem.output[0] = 256;
  EXPECT_GT(ConvCycles(geometry, 132), 1.5 * once);
}

}  // namespace
}  // namespace kiln
