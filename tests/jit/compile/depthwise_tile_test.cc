// What a thread of a depthwise convolution computes. Prevents tiles that load
// the same rows again and again, that no multiprocessor is left for, or whose
// filter does not fit in registers.
#include "jit/compile/depthwise_tile.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

constexpr int kMultiprocessors = 132;
constexpr int64_t kF32 = 4;
constexpr int64_t kF16 = 2;

// A filter of `kernel` x `kernel` over images as large as its outputs.
DepthwiseWork Same(const Dims& images, int64_t kernel, int64_t element_bytes) {
  DepthwiseWork work;
  work.conv.groups = images[1];
  work.conv.stride = {1, 1};
  work.conv.padding = {kernel / 2, kernel / 2};
  work.conv.dilation = {1, 1};
  work.input = work.output = images;
  work.weight = {images[1], 1, kernel, kernel};
  work.bytes = 2 * element_bytes * NumElements(images);
  work.element_bytes = element_bytes;
  return work;
}

// The same of dilation 2, for which there are no walks.
DepthwiseWork Dilated(const Dims& images, int64_t kernel,
                      int64_t element_bytes) {
  DepthwiseWork work = Same(images, kernel, element_bytes);
  work.conv.dilation = {2, 2};
  work.conv.padding = {kernel / 2 * 2, kernel / 2 * 2};
  return work;
}

TEST(DepthwiseTileTest, LargeFiltersHaveTallTiles) {
  const auto tile =
      ChooseDepthwiseTile(Dilated({32, 96, 56, 56}, 7, kF32), kMultiprocessors);
  ASSERT_TRUE(tile.has_value());
  EXPECT_FALSE(tile->walks);
  EXPECT_GT(tile->rows, 2);
}

// A patch for each output, of which nothing is shared.
TEST(DepthwiseTileTest, StridesOfAFiltersSizeHaveTiles) {
  DepthwiseWork work = Same({8, 8, 126, 126}, 7, kF32);
  work.conv.stride = {7, 7};
  work.conv.padding = {0, 0};
  work.output = {8, 8, 18, 18};
  EXPECT_TRUE(ChooseDepthwiseTile(work, kMultiprocessors).has_value());
  work.conv.stride = {9, 9};
  EXPECT_FALSE(ChooseDepthwiseTile(work, kMultiprocessors).has_value());
}

TEST(DepthwiseTileTest, LargeFiltersWalkDownWholeImages) {
  for (const int64_t bytes : {kF32, kF16}) {
    const auto walk =
        ChooseDepthwiseTile(Same({32, 96, 56, 56}, 7, bytes), kMultiprocessors);
    ASSERT_TRUE(walk.has_value());
    EXPECT_TRUE(walk->walks);
    EXPECT_EQ(walk->rows, 56);
    EXPECT_EQ(walk->columns, 4);
  }
}

TEST(DepthwiseTileTest, AllWalksAreThereAtOnceIfTheyFit) {
  const auto walk =
      ChooseDepthwiseTile(Same({32, 96, 56, 56}, 7, kF16), kMultiprocessors);
  ASSERT_TRUE(walk.has_value());
  EXPECT_TRUE(walk->walks);
  EXPECT_EQ(walk->min_blocks, 3);
}

TEST(DepthwiseTileTest, WalksHaveOneVector) {
  const auto even =
      ChooseDepthwiseTile(Same({32, 384, 30, 30}, 7, kF32), kMultiprocessors);
  ASSERT_TRUE(even.has_value());
  EXPECT_TRUE(even->walks);
  EXPECT_EQ(even->vector, 2);
  EXPECT_EQ(even->columns, 2);
}

TEST(DepthwiseTileTest, NothingWalksWhereThatIsNotWorthwhile) {
  const auto walks = [](const DepthwiseWork& work) {
    return ChooseDepthwiseTile(work, kMultiprocessors)->walks;
  };
  EXPECT_FALSE(walks(Same({32, 384, 14, 14}, 7, kF16)));  // 4 bytes a copy
  EXPECT_FALSE(walks(Same({32, 384, 14, 14}, 7, kF32)));
  EXPECT_FALSE(walks(Same({32, 768, 7, 7}, 7, kF16)));
  EXPECT_FALSE(walks(Same({32, 144, 56, 56}, 3, kF16)));
  EXPECT_FALSE(walks(Same({32, 120, 28, 28}, 5, kF32)));
  EXPECT_FALSE(walks(Same({4, 96, 2048, 2048}, 7, kF16)));  // no whole row
  DepthwiseWork wide = Same({32, 96, 56, 56}, 7, kF16);
  EXPECT_TRUE(walks(wide));
  wide.has_async_copies = false;
  EXPECT_FALSE(walks(wide));
}

TEST(DepthwiseTileTest, WhatFollowsTakesRegistersOfWalks) {
  DepthwiseWork work = Same({64, 128, 56, 56}, 5, kF16);
  const auto few = ChooseDepthwiseTile(work, kMultiprocessors);
  work.operands = 8;
  const auto many = ChooseDepthwiseTile(work, kMultiprocessors);
  ASSERT_TRUE(few->walks && many->walks);
  EXPECT_GT(few->min_blocks, many->min_blocks);
}

TEST(DepthwiseTileTest, WhereMemoryTakesLongestTilesAreShort) {
  const auto tile =
      ChooseDepthwiseTile(Same({32, 96, 112, 112}, 3, kF32), kMultiprocessors);
  EXPECT_EQ(tile, (DepthwiseTile{2, 4, 4, true}));
}

TEST(DepthwiseTileTest, TilesDivideSmallImages) {
  const auto even = ChooseDepthwiseTile(Dilated({32, 384, 14, 14}, 7, kF16),
                                        kMultiprocessors);
  EXPECT_EQ(even, (DepthwiseTile{7, 2, 2, true}));
  const auto odd =
      ChooseDepthwiseTile(Dilated({64, 768, 7, 7}, 7, kF16), kMultiprocessors);
  EXPECT_EQ(odd, (DepthwiseTile{7, 1, 1, true}));
}

TEST(DepthwiseTileTest, TilesOfOddRowsHaveSeveralColumns) {
  const auto tile_of = [](const DepthwiseWork& work) {
    return *ChooseDepthwiseTile(work, kMultiprocessors);
  };
  const DepthwiseTile divides = tile_of(Same({8, 64, 147, 147}, 3, kF16));
  EXPECT_EQ(divides.vector, 1);
  EXPECT_EQ(divides.columns, 3);
  const DepthwiseTile beyond = tile_of(Same({16, 56, 149, 149}, 7, kF16));
  EXPECT_EQ(beyond.vector, 1);
  EXPECT_GT(beyond.columns, 2);
  // Of few taps, ends of rows would take longer than what is shared.
  EXPECT_EQ(tile_of(Same({8, 64, 149, 149}, 3, kF16)).columns, 1);
  EXPECT_EQ(tile_of(Same({64, 960, 7, 7}, 3, kF16)).columns, 1);
}

TEST(DepthwiseTileTest, FewOutputsAreSharedByAllMultiprocessors) {
  const auto tile =
      ChooseDepthwiseTile(Same({1, 96, 28, 28}, 7, kF32), kMultiprocessors);
  ASSERT_TRUE(tile.has_value());
  EXPECT_EQ(tile->rows, 1);
}

TEST(DepthwiseTileTest, FiltersTooLargeForRegistersAreTakenByRows) {
  EXPECT_TRUE(
      ChooseDepthwiseTile(Same({16, 128, 32, 32}, 9, kF32), kMultiprocessors)
          ->holds_filter);
  EXPECT_FALSE(
      ChooseDepthwiseTile(Same({16, 128, 32, 32}, 31, kF32), kMultiprocessors)
          ->holds_filter);
}

TEST(DepthwiseTileTest, FiltersThatReachFarAreTakenByRows) {
  DepthwiseWork down = Same({8, 32, 1200, 56}, 3, kF32);
  down.conv.dilation = {500, 1};
  EXPECT_FALSE(ChooseDepthwiseTile(down, kMultiprocessors)->holds_filter);
  DepthwiseWork across = Same({32, 96, 56, 56}, 9, kF32);
  across.conv.dilation = {1, 5};
  EXPECT_FALSE(ChooseDepthwiseTile(across, kMultiprocessors)->holds_filter);
  across.conv.dilation = {1, 1};
  EXPECT_TRUE(ChooseDepthwiseTile(across, kMultiprocessors)->holds_filter);
}

TEST(DepthwiseTileTest, TilesOfLargeFiltersAreWide) {
  const auto tile =
      ChooseDepthwiseTile(Same({16, 512, 14, 14}, 31, kF16), kMultiprocessors);
  ASSERT_TRUE(tile.has_value());
  EXPECT_EQ(tile->columns, 14);
  EXPECT_EQ(tile->vector, 2);
}

TEST(DepthwiseTileTest, TilesOfSignalsAreWide) {
  for (const int64_t bytes : {kF32, kF16}) {
    DepthwiseWork signals = Same({16, 512, 1, 2000}, 31, bytes);
    signals.weight[2] = 1;
    signals.conv.padding[0] = 0;
    const auto tile = ChooseDepthwiseTile(signals, kMultiprocessors);
    ASSERT_TRUE(tile.has_value());
    EXPECT_EQ(tile->rows, 1);
    EXPECT_EQ(tile->columns, 16);
  }
}

TEST(DepthwiseTileTest, LongRowsAreTakenInParts) {
  const auto long_row = [](int64_t taps, int64_t dilation) {
    DepthwiseWork signals = Same({16, 512, 1, 2000}, taps, kF16);
    signals.weight[2] = 1;
    signals.conv.padding = {0, (taps - 1) * dilation / 2};
    signals.conv.dilation = {1, dilation};
    return ChooseDepthwiseTile(signals, kMultiprocessors);
  };
  EXPECT_EQ(long_row(31, 1)->row_taps, 0);
  EXPECT_EQ(long_row(63, 1)->row_taps, 16);
  EXPECT_EQ(long_row(11, 5)->row_taps, 8);
  EXPECT_EQ(long_row(11, 13)->row_taps, 4);
  EXPECT_FALSE(long_row(63, 1)->holds_filter);
}

TEST(DepthwiseTileTest, OtherConvolutionsHaveNone) {
  DepthwiseWork grouped = Same({16, 128, 64, 64}, 3, kF32);
  grouped.conv.groups = 64;
  EXPECT_FALSE(ChooseDepthwiseTile(grouped, kMultiprocessors));
  DepthwiseWork far = Same({16, 128, 64, 64}, 3, kF32);
  far.conv.dilation = {1, 24};
  EXPECT_FALSE(ChooseDepthwiseTile(far, kMultiprocessors));
}

}  // namespace
}  // namespace kiln
