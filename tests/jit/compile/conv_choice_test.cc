// Longer than 400 lines because all choices are checked to be sound alike.
// Properties of every tile that is chosen, over convolutions of many shapes.
#include "jit/compile/conv_choice.h"

#include <gtest/gtest.h>

#include "jit/compile/compute_capability.h"
#include "jit/compile/conv_cost.h"
#include "jit/compile/conv_shared.h"

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

// Of a choice for warpgroups.
void ExpectSoundGroups(const ConvGeometry& g) {
  const int64_t last = (g.tile_h - 1) * g.run_pitch() + g.tile_w;
  EXPECT_LE(last, g.run() / g.images);
  EXPECT_LE(g.tile_w + g.halo(1), g.pitch);
  EXPECT_LE(g.tiles_n * 8, 256);
  EXPECT_EQ(g.chunk % 8, 0);
  EXPECT_GE(g.stages, 2);
  // Whatever is multiplied lies in the patch of its octet.
  const int64_t octets = g.chunk / 8;
  for (int64_t tap = 0; tap < g.taps(0) * g.taps(1); ++tap) {
    EXPECT_LE(g.TapOffset(tap) + g.run_span(), g.image_positions());
    const bool is_by_octets = g.octets_of_row() == 1;
    EXPECT_EQ(g.OffsetOf(is_by_octets ? tap : tap * octets),
              g.octets_of_row() * g.TapOffset(tap));
  }
  for (int64_t eight = 0; eight + 1 < octets * g.taps(0) * g.taps(1);
       eight += 2) {
    if (g.octets_of_row() == 2) {
      // One row of units holds both halves.
      EXPECT_EQ(g.OffsetOf(eight + 1), g.OffsetOf(eight));
    } else {
      // Descriptors count a second half forwards.
      EXPECT_GT(g.OffsetOf(eight + 1), g.OffsetOf(eight));
    }
  }
  // Swizzled rows begin where the pattern does, every 256 bytes.
  if (g.octets_of_row() == 2) {
    EXPECT_EQ(g.image_positions() * 2 % 16, 0);
    EXPECT_EQ((g.pixel_units() + g.weight_units()) % 16, 0);
  }
  // Threads get no more registers than there are.
  const int64_t producers = g.producer_registers() == 0
                                ? g.launch_registers()
                                : g.producer_registers();
  EXPECT_LE((g.groups() * g.consumer_registers() + g.producers * producers) *
                128 * g.resident_blocks,
            65536);
  if (g.producer_registers() > 0) {
    EXPECT_GT(g.consumer_registers(), g.launch_registers());
  }
  // Four pixels that are copied at once lie in one row.
  if (g.batches_ahead > 0) {
    EXPECT_EQ(g.pitch % 4, 0);
    EXPECT_EQ(g.step(1) % 4, 0);
    EXPECT_EQ(g.padding(1) % 4, 0);
    EXPECT_EQ(g.problem.input[3] % 4, 0);
  }
  // A stage always has the same producer.
  EXPECT_EQ(g.stages % g.chunk_producers(), 0);
  if (g.channel_rows) {
    EXPECT_EQ(g.run_pitch() % 8, 0);
    EXPECT_EQ(g.tiles_n * 8 % g.run_pitch(), 0);
  }
}

void ExpectSound(const ConvGeometry& g, const Target& target) {
  // Strips share an image's height, so that none could have a tile less.
  ConvGeometry tiles = g;
  tiles.tiles_per_block = 1;
  const int64_t beyond = g.strips() * g.tiles_per_block - tiles.strips();
  EXPECT_GE(beyond, 0);
  EXPECT_LT(beyond, g.strips());
  const ConvProblem& p = g.problem;
  EXPECT_LE(g.shared_bytes() * g.resident_blocks, MaxSharedBytes(target));
  EXPECT_LE(g.threads(), 1024);
  EXPECT_GE(g.tiles_across() * g.tile_w * g.phases(1), p.output[3]);
  EXPECT_GE(g.strips() * g.tiles_per_block * g.tile_h * g.phases(0),
            p.output[2]);
  EXPECT_GE(g.channel_blocks() * g.block_channels(), p.group_outputs());
  EXPECT_GE(g.all_chunks() * g.chunk, p.group_inputs());
  if (g.has_groups()) {
    EXPECT_EQ(target.arch, "sm_90a");
    ExpectSoundGroups(g);
    return;
  }
  EXPECT_EQ(int64_t{g.tile_h} * g.tile_w, g.rows());
  if (g.copies_four) {
    EXPECT_EQ(p.input[3] % 4, 0);
    EXPECT_EQ((p.padding[1] + g.lead()) % 4, 0);
    EXPECT_EQ(g.patch_width() % 4, 0);
  }
}

// A chunk has little to multiply where the filter is a single pixel.
TEST(ConvChoiceTest, SinglePixelsOfManyChannelsComeInLargeChunks) {
  const ConvProblem problem = Problem(32, 512, 512, 14, 1, 1, 0);
  for (const Grade grade : {Grade::kFp32, Grade::kTf32}) {
    const auto geometry =
        ChooseConvGeometry(problem, {}, {grade, {"sm_90a", 132}, 0});
    ASSERT_TRUE(geometry.has_value());
    EXPECT_GE(geometry->chunk, 64);
  }
}

// Loads that are on their way lie in the L1: 91 us with four stages, and 79.
TEST(ConvChoiceTest, StagesLeaveTheL1Room) {
  const ConvProblem problem = Problem(8, 512, 64, 96, 1, 1, 0);
  for (const Grade grade : {Grade::kFp32, Grade::kTf32}) {
    const auto geometry =
        ChooseConvGeometry(problem, {}, {grade, {"sm_90a", 132}, 0});
    ASSERT_TRUE(geometry.has_value());
    EXPECT_FALSE(LeavesLittleL1(*geometry, {}));
  }
}

// Images of fewer pixels than a warpgroup has rows, more than multiprocessors.
TEST(ConvChoiceTest, SmallImagesShareABlock) {
  ConvDemands statistics;
  statistics.has_statistics = statistics.stores = true;
  statistics.group_channels = 32;
  const ConvOptions options{Grade::kFp32, {"sm_90a", 132}, 0};
  for (const ConvProblem& problem : {Problem(128, 256, 256, 7, 3, 1, 1),
                                     Problem(528, 40, 96, 13, 3, 2, 1)}) {
    const auto geometry = ChooseConvGeometry(problem, statistics, options);
    ASSERT_TRUE(geometry.has_value());
    EXPECT_GT(geometry->images, 1);
    EXPECT_EQ(geometry->images, geometry->groups_m);
    EXPECT_EQ(geometry->Splits(32), 1);
    ExpectSound(*geometry, options.target);
  }
}

// Groups of 10, 20 and 40 channels, of diffusion models, are cut by blocks of
// 64; by warps, which need them whole, these convolutions took 3 to 4 times as
// long.
TEST(ConvChoiceTest, BlocksHavePartsOfGroups) {
  ConvDemands statistics;
  statistics.has_statistics = statistics.stores = true;
  const ConvOptions options{Grade::kTf32, {"sm_90a", 132}, 0};
  for (const int64_t channels : {640, 1280}) {
    statistics.group_channels = channels / 32;
    ConvProblem problem = Problem(4, channels, channels, 32, 3, 1, 1);
    problem.input_type = problem.weight_type = DataType::kF16;
    const auto geometry = ChooseConvGeometry(problem, statistics, options);
    ASSERT_TRUE(geometry.has_value());
    EXPECT_TRUE(geometry->has_groups());
    EXPECT_EQ(geometry->PartsOfState(channels / 32), 2);
    ExpectSound(*geometry, options.target);
  }
}

// Of whole rows of 32 pixels products have 40 columns; of 64 an eighth more
// than pixels, which parts of sectors cost.
TEST(ConvChoiceTest, NarrowImagesHaveRowsOfEight) {
  ConvDemands stores;
  stores.stores = true;
  stores.stored_type = DataType::kF16;
  const ConvOptions options{Grade::kTf32, {"sm_90a", 132}, 0};
  ConvProblem problem = Problem(16, 512, 512, 32, 3, 1, 1);
  problem.input_type = problem.weight_type = DataType::kF16;
  const auto narrow = ChooseConvGeometry(problem, stores, options);
  ASSERT_TRUE(narrow.has_value());
  EXPECT_TRUE(narrow->rows_of_eight());
  EXPECT_EQ(narrow->run(), narrow->tile_h * narrow->tile_w);
  ExpectSound(*narrow, options.target);
  problem.input[2] = problem.input[3] = 64;
  problem.output[2] = problem.output[3] = 64;
  const auto wide = ChooseConvGeometry(problem, stores, options);
  ASSERT_TRUE(wide.has_value());
  EXPECT_FALSE(wide->rows_of_eight());
}

// As with a stride results of 8 x 8 pixels have, of which rows would otherwise
// take nine columns of a product, and so the tile more than 64.
TEST(ConvChoiceTest, SmallResultsOfAStrideHaveRowsOfEight) {
  ConvDemands stores;
  stores.stores = true;
  for (const DataType dtype : {DataType::kF32, DataType::kF16}) {
    const ConvOptions options{Grade::kFp32, {"sm_90a", 132}, 0};
    ConvProblem problem = Problem(64, 256, 512, 16, 4, 2, 1);
    problem.input_type = problem.weight_type = stores.stored_type = dtype;
    const auto geometry = ChooseConvGeometry(problem, stores, options);
    ASSERT_TRUE(geometry.has_value());
    EXPECT_TRUE(geometry->rows_of_eight());
    ExpectSound(*geometry, options.target);
  }
}

// One product has 64 of the 66 positions that the patch has of a row.
TEST(ConvChoiceTest, RowsOf64PixelsAreThoseOfProducts) {
  ConvDemands stores;
  stores.stores = true;
  const ConvOptions options{Grade::kFp32, {"sm_90a", 132}, 0};
  const ConvProblem problem = Problem(4, 256, 256, 64, 3, 1, 1);
  const auto geometry = ChooseConvGeometry(problem, stores, options);
  ASSERT_TRUE(geometry.has_value());
  EXPECT_FALSE(geometry->channel_rows);
  EXPECT_EQ(geometry->run_columns, 64);
  EXPECT_EQ(geometry->run(), geometry->tile_h * geometry->tile_w);
  EXPECT_EQ(geometry->run_span(),
            (geometry->tile_h - 1) * geometry->pitch + 64);
  ExpectSound(*geometry, options.target);
}

// Of rows of 56, a patch has 64 positions by a dilation of 4, and 72 by one of
// 8.
TEST(ConvChoiceTest, RowsAreProductsOnlyIfThoseAreShorterThanThePatch) {
  ConvDemands stores;
  stores.stores = true;
  const ConvOptions options{Grade::kFp32, {"sm_90a", 132}, 0};
  const auto geometry_of = [&](int64_t dilation) {
    ConvProblem problem = Problem(16, 64, 64, 56, 3, 1, 1);
    problem.dilation = {dilation, dilation};
    problem.padding = {dilation, dilation};
    return *ChooseConvGeometry(problem, stores, options);
  };
  EXPECT_NE(geometry_of(4).run_columns, 64);
  const ConvGeometry geometry = geometry_of(8);
  EXPECT_EQ(geometry.run_columns, 64);
  EXPECT_EQ(geometry.tile_w, 56);
  EXPECT_EQ(geometry.run(), geometry.tile_h * 64);
  ExpectSound(geometry, options.target);
}

// Tiles of a 48th of this row would have a quarter of the channels.
TEST(ConvChoiceTest, WideRowsAreCutUntilTilesHaveAllChannels) {
  ConvDemands stores;
  stores.stores = true;
  const ConvOptions options{Grade::kTf32, {"sm_90a", 132}, 0};
  ConvProblem problem = Problem(8, 64, 64, 32768, 3, 1, 1);
  problem.input[2] = problem.output[2] = problem.kernel[0] = 1;
  problem.padding[0] = 0;
  const auto geometry = ChooseConvGeometry(problem, stores, options);
  ASSERT_TRUE(geometry.has_value());
  EXPECT_EQ(geometry->block_channels(), 64);
  EXPECT_LT(geometry->tile_w, 32768 / 48);
  ExpectSound(*geometry, options.target);
}

TEST(ConvChoiceTest, BlocksHaveWholeNumbersOfImages) {
  for (const int64_t images : {131, 133, 264, 395}) {
    const ConvProblem problem = Problem(images, 64, 128, 7, 3, 1, 1);
    const auto geometry =
        ChooseConvGeometry(problem, {}, {Grade::kFp32, {"sm_90a", 132}, 0});
    ASSERT_TRUE(geometry.has_value());
    EXPECT_EQ(images % geometry->images, 0) << images;
  }
}

// Tiles of 6 x 38 of a 3 x 3 convolution of 64 channels, one below the other.
ConvGeometry OfTilesInAStrip() {
  ConvGeometry g;
  g.problem = Problem(128, 64, 64, 256, 3, 1, 1);
  g.tile_h = 6;
  g.tile_w = 38;
  g.pitch = 40;
  g.groups_m = 1;
  g.groups_n = 2;
  g.channel_rows = true;
  g.resident_blocks = 1;
  g.tiles_n = 15;
  g.producers = 2;
  g.chunk = 32;
  g.stages = 4;
  g.tiles_per_block = 4;
  return g;
}

TEST(ConvChoiceTest, TilesTakeRowsFromTheOneAbove) {
  const ConvGeometry g = OfTilesInAStrip();
  EXPECT_EQ(g.brought(), 8 * 40);
  EXPECT_EQ(g.carried_rows(), 2);
  EXPECT_EQ(g.carried_positions(), 2 * 40);
}

TEST(ConvChoiceTest, TilesTakeNoRowsThatAreGoneOrSaveNothing) {
  ConvGeometry g = OfTilesInAStrip();
  g.stages = 2;  // the stage of the tile above is used again at once
  EXPECT_EQ(g.carried_rows(), 0);
  g = OfTilesInAStrip();
  g.tiles_per_block = 2;
  EXPECT_EQ(g.carried_rows(), 0);
  g = OfTilesInAStrip();
  g.problem.input[1] = 8;
  g.chunk = 8;  // a chunk for each producer, which take turns
  EXPECT_GT(g.chunk_producers(), 1);
  EXPECT_EQ(g.carried_rows(), 0);
  g = OfTilesInAStrip();
  g.tile_h = 12;  // 480 and 560 positions are two and three for each thread
  EXPECT_EQ(g.carried_rows(), 2);
  g.tile_h = 10;  // 400 and 480, two for each
  EXPECT_EQ(g.carried_rows(), 0);
}

// Threads of a producer meet where they vote on scales.
TEST(ConvChoiceTest, TilesThatAreNotScaledTakeNoRows) {
  ConvGeometry g = OfTilesInAStrip();
  g.problem.input_type = g.problem.weight_type = DataType::kF16;
  EXPECT_EQ(g.carried_rows(), 0);
}

// Of 2 x 112 tiles with 64 channels in two chunks a stage has 29 KB: four leave
// the L1 the smallest of its shares, three the next.
TEST(ConvChoiceTest, AStageLessLeavesTheL1More) {
  ConvDemands demands;
  demands.stores = true;
  const auto geometry =
      ChooseConvGeometry(Problem(32, 64, 64, 112, 3, 1, 1), demands,
                         {Grade::kTf32, {"sm_90a", 132}, 0});
  ASSERT_TRUE(geometry.has_value());
  EXPECT_EQ(geometry->chunks(), 2);
  EXPECT_EQ(geometry->stages, 3);
  EXPECT_LE(geometry->shared_bytes(), 196 * 1024);
}

// Their states would be of several images.
TEST(ConvChoiceTest, ReductionsHaveOneImageInABlock) {
  ConvDemands channels;
  channels.all_channels_in_a_block = true;
  ConvDemands pixels;
  pixels.reduces_images = true;
  ConvDemands windows;
  windows.windows = {{2, 2}, {2, 2}};
  for (const ConvDemands& demands : {channels, pixels, windows}) {
    const auto geometry =
        ChooseConvGeometry(Problem(528, 64, 64, 6, 3, 1, 1), demands,
                           {Grade::kFp32, {"sm_90a", 132}, 0});
    ASSERT_TRUE(geometry.has_value());
    EXPECT_EQ(geometry->images, 1);
  }
}

// As first layers have them without padding. Each store of a warp would touch
// two sectors in part: 280 us instead of 103.
TEST(ConvChoiceTest, RowsOfNoWholeSectorsAreForWarpgroups) {
  ConvDemands stores;
  stores.stores = true;
  for (const Grade grade : {Grade::kFp32, Grade::kTf32}) {
    for (const int64_t channels : {1, 3, 4}) {
      const auto geometry =
          ChooseConvGeometry(Problem(16, channels, 64, 256, 3, 1, 0), stores,
                             {grade, {"sm_90a", 132}, 0});
      ASSERT_TRUE(geometry.has_value());
      EXPECT_TRUE(geometry->has_groups()) << channels;
    }
  }
}

TEST(ConvChoiceTest, AFilterForEachChannelHasNoTile) {
  const auto has_tile = [](const ConvProblem& problem) {
    return ChooseConvGeometry(problem, {}, {Grade::kTf32, kTargets[2], 0})
        .has_value();
  };
  ConvProblem depthwise = Problem(32, 96, 96, 56, 7, 1, 3);
  depthwise.groups = 96;
  EXPECT_FALSE(has_tile(depthwise));
  EXPECT_FALSE(has_tile(Problem(32, 1, 1, 56, 7, 1, 3)));
  EXPECT_TRUE(has_tile(Problem(32, 1, 1, 56, 15, 1, 7))) << "too many taps";
}

TEST(ConvChoiceTest, EveryTileCoversItsConvolutionAndFits) {
  for (const Target& target : kTargets) {
    for (const Grade grade : {Grade::kFp32, Grade::kTf32}) {
      for (const int64_t channels : {1, 3, 8, 20, 64, 512}) {
        for (const int64_t outputs : {2, 13, 64, 240}) {
          for (const int64_t kernel : {1, 3, 5, 7}) {
            for (const int64_t stride : {1, 2}) {
              const ConvProblem problem =
                  Problem(4, channels, outputs, 30, kernel, stride, kernel / 2);
              const auto geometry =
                  ChooseConvGeometry(problem, {}, {grade, target, 0});
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
  demands.windows = {{4, 4}, {4, 4}};
  demands.group_channels = 4;
  demands.all_channels_in_a_block = true;
  for (const Target& target : kTargets) {
    const auto geometry =
        ChooseConvGeometry(problem, demands, {Grade::kFp32, target, 0});
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
  EXPECT_TRUE(
      ChooseConvGeometry(problem, {}, {Grade::kFp32, h100, 0})->splits_input);
  EXPECT_FALSE(
      ChooseConvGeometry(problem, {}, {Grade::kTf32, h100, 0})->splits_input);
  // Half precision is multiplied as it is.
  problem.input_type = problem.weight_type = DataType::kF16;
  const auto half = ChooseConvGeometry(problem, {}, {Grade::kFp32, h100, 0});
  EXPECT_FALSE(half->splits_input || half->splits_weight);
}

TEST(ConvChoiceTest, AmpleRegistersMeanFewerSums) {
  const ConvProblem problem = Problem(128, 8, 64, 128, 3, 1, 0);
  const Target h100 = {"sm_90a", 132};
  const auto tight = ChooseConvGeometry(problem, {}, {Grade::kTf32, h100, 0});
  const auto ample = ChooseConvGeometry(problem, {}, {Grade::kTf32, h100, 32});
  EXPECT_LE(ample->tiles_m * ample->tiles_n, tight->tiles_m * tight->tiles_n);
}

// A transposed convolution of stride 2: phases where each has the same taps.
ConvProblem TransposedProblem(int64_t kernel) {
  ConvProblem problem;
  problem.input = {8, 64, 32, 32};
  problem.output = {8, 32, 64, 64};
  problem.kernel = {kernel, kernel};
  problem.padding = {kernel - 1 - 1, kernel - 1 - 1};
  problem.insert = {2, 2};
  problem.transposed = true;
  return problem;
}

TEST(ConvChoiceTest, TransposedStridesAreMultipliedPhaseByPhase) {
  const Target h100 = {"sm_90a", 132};
  const auto even =
      ChooseConvGeometry(TransposedProblem(4), {}, {Grade::kFp32, h100, 0});
  ASSERT_TRUE(even.has_value());
  ASSERT_TRUE(even->has_groups());
  ExpectSound(*even, h100);
  EXPECT_EQ(even->phases(0) * even->phases(1), 4);
  EXPECT_EQ(even->taps(0), 2);
  EXPECT_FALSE(even->has_uneven_phases());
  // Three taps do not divide into two phases.
  const auto odd =
      ChooseConvGeometry(TransposedProblem(3), {}, {Grade::kFp32, h100, 0});
  ASSERT_TRUE(odd.has_value());
  ASSERT_TRUE(odd->has_groups());
  ExpectSound(*odd, h100);
  EXPECT_TRUE(odd->has_uneven_phases());
  EXPECT_EQ(odd->taps(0), 2);
}

TEST(ConvChoiceTest, EachScheduleWinsSomewhere) {
  const Target h100 = {"sm_90a", 132};
  const auto choose = [&](const ConvProblem& problem,
                          const ConvDemands& demands) {
    return *ChooseConvGeometry(problem, demands, {Grade::kFp32, h100, 0});
  };
  ConvDemands statistics;
  statistics.has_statistics = true;
  statistics.group_channels = 4;
  const ConvProblem wide = Problem(128, 8, 64, 128, 3, 1, 0);
  EXPECT_TRUE(choose(wide, statistics).channel_rows);
  ConvDemands channels;
  channels.all_channels_in_a_block = true;
  EXPECT_TRUE(choose(wide, channels).channel_rows);
  EXPECT_FALSE(
      choose(Problem(128, 8, 48, 128, 3, 1, 0), channels).channel_rows);
  // Of few channels a unit holds those of two columns.
  EXPECT_TRUE(choose(Problem(32, 3, 64, 224, 7, 2, 3), {}).has_groups());
  EXPECT_TRUE(choose(Problem(4, 8, 320, 56, 7, 2, 3), {}).has_groups());
  // A part of a large filter with a stride has weights that leave room.
  EXPECT_GT(choose(Problem(4, 320, 320, 56, 7, 2, 3), {}).row_parts, 1);
  // Rows of seven pixels would leave half of each run of eights empty.
  EXPECT_FALSE(choose(Problem(128, 256, 256, 7, 3, 1, 1), {}).channel_rows);
  // One image: strips are short, so that there are blocks for all.
  EXPECT_GE(choose(Problem(1, 64, 64, 256, 3, 1, 1), {}).blocks(), 100);
}

// Tensor cores multiply zeros of few channels, but few results do not pay.
TEST(ConvChoiceTest, GroupsOfTwoChannelsToEightAreMultiplied) {
  const auto choose = [](int64_t inputs, int64_t outputs) {
    ConvProblem problem = Problem(8, 16 * inputs, 16 * outputs, 56, 3, 1, 1);
    problem.groups = 16;
    return ChooseConvGeometry(problem, {}, {Grade::kFp32, {"sm_90a", 132}, 0});
  };
  EXPECT_TRUE(choose(2, 8));
  EXPECT_TRUE(choose(3, 12));
  EXPECT_TRUE(choose(4, 4));
  EXPECT_FALSE(choose(3, 7));
  EXPECT_FALSE(choose(1, 8));
}

TEST(ConvChoiceTest, HalvesOfEightChannelsWithAStrideAreMultiplied) {
  ConvProblem problem = Problem(32, 256, 256, 56, 3, 2, 1);
  problem.groups = 32;
  problem.input_type = problem.weight_type = DataType::kF16;
  const auto g =
      ChooseConvGeometry(problem, {}, {Grade::kFp32, kTargets[2], 0});
  ASSERT_TRUE(g.has_value());
  EXPECT_TRUE(g->has_groups());
  EXPECT_EQ(g->chunk, 16);
}

// Of a tile of four channels a product has four of eight columns and eight of
// sixteen channels; f16 [32,128,56,56] took 73 us, of 64 channels 34.
TEST(ConvChoiceTest, GroupsOfFewChannelsAreJoined) {
  const ConvOptions options{Grade::kFp32, {"sm_90a", 132}, 0};
  ConvDemands stores;
  stores.stores = true;
  const auto choose = [&](int64_t channels, DataType dtype) {
    ConvProblem problem =
        Problem(32, 32 * channels, 32 * channels, 56, 3, 1, 1);
    problem.groups = 32;
    problem.input_type = problem.weight_type = stores.stored_type = dtype;
    const auto geometry = ChooseConvGeometry(problem, stores, options);
    ExpectSound(*geometry, options.target);
    return geometry->problem;
  };
  for (const DataType dtype : {DataType::kF16, DataType::kF32}) {
    for (const int64_t channels : {4, 8}) {
      const ConvProblem joined = choose(channels, dtype);
      EXPECT_GT(joined.joined, 1);
      EXPECT_EQ(joined.groups * joined.joined, 32);
      EXPECT_LE(joined.group_inputs(), 64);
    }
    EXPECT_EQ(choose(64, dtype).joined, 1);
  }
}

TEST(ConvCostTest, TwiceTheImagesCostMore) {
  const Target h100 = {"sm_90a", 132};
  auto geometry = *ChooseConvGeometry(Problem(128, 8, 64, 128, 3, 1, 0), {},
                                      {Grade::kFp32, h100, 0});
  const double tile = TileCycles(geometry, {}, h100);
  const double once = ConvCycles(geometry, tile, h100.sm_count);
  geometry.problem.input[0] = geometry.problem.output[0] = 256;
  EXPECT_GT(ConvCycles(geometry, tile, h100.sm_count), 1.5 * once);
}

}  // namespace
}  // namespace kiln
