// What follows from a tile: units of shared memory, parts of groups.
#include "jit/compile/conv_geometry.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

// The geometry of a warpgroup, of which only what a filter needs counts.
ConvGeometry OfFewChannels(int64_t channels, int64_t width, int64_t dilation,
                           DataType type) {
  ConvGeometry g;
  g.problem.input = {1, channels, 40, 40};
  g.problem.output = {1, 64, 41 - width, 41 - width};
  g.problem.kernel = {width, width};
  g.problem.dilation = {dilation, dilation};
  g.problem.input_type = g.problem.weight_type = type;
  g.groups_m = g.groups_n = 1;
  g.octet_columns = g.problem.octet_columns();
  g.pitch = 40;
  return g;
}

TEST(ConvGeometryTest, UnitsHaveAllFewChannelsOfSeveralColumns) {
  struct Case {
    int64_t channels, width, columns, taps;
    DataType type = DataType::kF32;
  };
  for (const Case& c : {
           Case{1, 3, 3, 1},
           {1, 9, 5, 2},
           {2, 5, 3, 2},
           {3, 7, 2, 4},
           {4, 3, 2, 2},
           {5, 3, 1, 3},
           {3, 1, 1, 1},
           // Half of the smallest f16 is no f16: scaled where that is needed.
           {3, 7, 2, 4, DataType::kF16},
           {3, 4, 2, 2, DataType::kF16},
           {1, 9, 5, 2, DataType::kBF16},
       }) {
    const ConvGeometry g = OfFewChannels(c.channels, c.width, 1, c.type);
    EXPECT_EQ(g.octet_columns, c.columns) << c.channels << " " << c.width;
    EXPECT_EQ(g.taps(1), c.taps) << c.channels << " " << c.width;
    EXPECT_EQ(g.taps(0), c.width);
  }
}

// Of a transposed convolution fewer steps follow each other, for PyTorch's sums
// are more exact there.
TEST(ConvGeometryTest, SumsOfLongChunksLeaveTheTensorCoresInParts) {
  struct Case {
    int64_t width;
    int chunk;
    bool transposed;
    int64_t calls, chains;
  };
  for (const Case& c : {Case{3, 16, true, 1, 1},
                        {3, 32, false, 2, 1},
                        {3, 32, true, 2, 2},
                        {2, 128, true, 8, 4},
                        {4, 32, false, 2, 2},
                        {4, 32, true, 1, 3},
                        {5, 16, false, 1, 2},
                        {5, 8, true, 1, 1},
                        {7, 16, false, 1, 3}}) {
    ConvGeometry g = OfFewChannels(64, c.width, 1, DataType::kF32);
    g.problem.transposed = c.transposed;
    g.chunk = c.chunk;
    g.tiles_n = 12;  // a sixteen's products take longer than a loop's turn
    EXPECT_EQ(g.chains(), 1) << "of operands in one part";
    g.splits_input = g.splits_weight = true;
    EXPECT_EQ(g.product_calls(), c.calls) << c.width << " " << c.chunk;
    EXPECT_EQ(g.chains(), c.chains) << c.width << " " << c.chunk;
  }
}

// Only where units then have more columns.
TEST(ConvGeometryTest, ScalesHalvesForTheHalfOfAWeight) {
  const auto is_scaled = [](int64_t channels, int64_t width, DataType type) {
    const ConvProblem& problem =
        OfFewChannels(channels, width, 1, type).problem;
    EXPECT_EQ(problem.takes_as_stored(),
              type != DataType::kF32 && !problem.scales_few_halves());
    return problem.scales_few_halves();
  };
  EXPECT_TRUE(is_scaled(3, 7, DataType::kF16));
  EXPECT_TRUE(is_scaled(4, 3, DataType::kBF16));
  EXPECT_FALSE(is_scaled(4, 4, DataType::kF16));
  EXPECT_FALSE(is_scaled(1, 3, DataType::kF16));
  EXPECT_FALSE(is_scaled(5, 3, DataType::kF16)) << "a unit has one column";
  EXPECT_FALSE(is_scaled(3, 7, DataType::kF32));
}

// The last unit of a row of the filter ends with it.
TEST(ConvGeometryTest, TheLastUnitBeginsEarly) {
  const ConvGeometry g = OfFewChannels(3, 7, 2, DataType::kF32);
  EXPECT_EQ(g.ColumnOfTap(2), 4);
  EXPECT_EQ(g.ColumnOfTap(3), 5);
  EXPECT_EQ(g.TapOffset(3), 5 * 2);
  EXPECT_EQ(g.TapOffset(4), 2 * g.pitch);
  EXPECT_EQ(g.halo(1), 5 * 2);
}

// Three channels of a filter of an odd width, two columns apart.
ConvGeometry OfPairs(int64_t width, int64_t padding, DataType type) {
  ConvGeometry g = OfFewChannels(3, width, 1, type);
  g.problem.stride = {2, 2};
  g.problem.padding = {padding, padding};
  g.octet_columns = g.problem.octet_columns();
  g.pairs_columns = g.problem.pairs_columns();
  return g;
}

// Nothing has half a weight, and numbers of 16 bits stay as they are.
TEST(ConvGeometryTest, TheFirstOfPairsOfColumnsIsAlone) {
  const ConvGeometry g = OfPairs(7, 3, DataType::kF16);
  EXPECT_TRUE(g.pairs_columns);
  EXPECT_TRUE(g.problem.takes_as_stored());
  EXPECT_EQ(g.taps(1), 4);
  EXPECT_EQ(g.ColumnOfTap(0), 0);
  EXPECT_EQ(g.ColumnOfTap(1), 1);
  EXPECT_EQ(g.ColumnOfTap(3), 5);
  EXPECT_EQ(g.halo(1), 2);
  // A pair more than a plane has columns.
  EXPECT_EQ(g.brought(), 2 * g.plane_height() * (g.pitch + 1));
}

// More of them are on their way than of octets, which have eight numbers.
TEST(ConvGeometryTest, PairsOfColumnsAreManyAtOnce) {
  ConvGeometry g = OfPairs(7, 3, DataType::kF32);
  g.producers = 2;
  g.resident_blocks = 1;
  EXPECT_EQ(g.octets_at_once(), 6);
  g.splits_input = true;
  EXPECT_EQ(g.octets_at_once(), 5);
  g.pairs_columns = false;
  EXPECT_EQ(g.octets_at_once(), 4);
}

TEST(ConvGeometryTest, PairsOfColumnsBeginWhereAnAccessMay) {
  const auto pairs = [](int64_t width, int64_t padding, DataType type,
                        int64_t channels = 3, int64_t columns = 40) {
    ConvProblem problem = OfPairs(width, padding, type).problem;
    problem.input[1] = channels;
    problem.input[3] = columns;
    return problem.pairs_columns();
  };
  EXPECT_TRUE(pairs(7, 3, DataType::kF32));
  EXPECT_TRUE(pairs(3, 1, DataType::kBF16));
  EXPECT_FALSE(pairs(7, 2, DataType::kF32)) << "an odd column is the first";
  EXPECT_FALSE(pairs(6, 3, DataType::kF32)) << "no column is alone";
  EXPECT_FALSE(pairs(7, 3, DataType::kF32, 3, 41)) << "rows of odd length";
  EXPECT_TRUE(pairs(7, 3, DataType::kF16, 4));
  EXPECT_FALSE(pairs(7, 3, DataType::kF32, 4)) << "too many words";
  EXPECT_FALSE(pairs(7, 3, DataType::kF16, 2)) << "octets of four columns";
}

TEST(ConvGeometryTest, CountsPartsOfGroupsAndGroupsOfABlock) {
  ConvGeometry g;
  g.problem.input = {1, 64, 32, 32};
  g.problem.output = {1, 320, 32, 32};
  g.groups_m = g.groups_n = 1;
  g.channel_rows = true;  // blocks of 64 channels
  const auto expect = [&](int64_t group, int64_t parts, int64_t states) {
    SCOPED_TRACE(group);
    EXPECT_EQ(g.PartsOfState(group), parts);
    EXPECT_EQ(g.StatesOfBlock(group), states);
  };
  expect(8, 1, 8);
  expect(10, 2, 8);  // as 4 + 6 x 10
  expect(32, 1, 2);
  expect(40, 2, 3);
  expect(80, 2, 2);  // as 16 + 48 of two
  expect(160, 3, 2);
  expect(64, 1, 1);
  expect(320, 5, 1);
  g.problem.output = {1, 96, 32, 32};
  expect(96, 2, 1);
  g.groups_m = 2;  // of 128
  expect(96, 1, 1);
  expect(24, 1, 4);
}

}  // namespace
}  // namespace kiln
