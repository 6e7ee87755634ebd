// Which filters are cut into parts of their rows. Prevents that a large one is
// left to warps in fp32, of which products of a chunk would be too many to be
// written one by one.
#include <gtest/gtest.h>

#include <string>

#include "fmt/format.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

const ConvGeometry& TileOf(const Schedule& schedule) {
  return *ConvolutionOf(schedule).conv;
}

Schedule FastestOf(int filter, int stride, const std::string& dtype = "f32",
                   const Target& target = kH100) {
  return Fastest(
      fmt::format("input x: {0}[8,64,64,64]\nparam w: {0}[64,64,{1},{1}]\n"
                  "c = conv2d(x, w, stride={2}, padding={3})\ny = relu(c)\n"
                  "output y\n",
                  dtype, filter, stride, filter / 2),
      target);
}

TEST(RowPartsTest, LargeFiltersOfF32AreCut) {
  for (const auto& [filter, stride] :
       {std::pair(9, 1), {11, 4}, {8, 8}, {7, 7}}) {
    const Schedule schedule = FastestOf(filter, stride);
    EXPECT_GT(TileOf(schedule).row_parts, 1) << filter;
    EXPECT_TRUE(TileOf(schedule).has_groups()) << filter;
  }
}

// Of a patch's planes a part of the rows needs fewer.
TEST(RowPartsTest, FiltersWithAStrideAreCut) {
  EXPECT_GT(TileOf(FastestOf(5, 2)).row_parts, 1);
}

// Of 2^-24 there is no half in 16 bits, so no row is in two parts.
TEST(RowPartsTest, RowsAreWholeWhereOperandsAreMultipliedAsTheyAreStored) {
  int cut = 0;
  for (const int filter : {4, 5, 6, 7, 9}) {
    const Schedule schedule = Fastest(fmt::format(
        "input x: f16[16,64,60,60]\nparam w: f16[128,64,{0},{0}]\n"
        "c = conv2d(x, w, stride=2, padding={1})\ny = relu(c)\noutput y\n",
        filter, filter / 2));
    const ConvGeometry& g = TileOf(schedule);
    cut += g.row_parts > 1;
    EXPECT_EQ(g.row_parts * g.taps(0), filter);
  }
  EXPECT_GE(cut, 2);
}

TEST(RowPartsTest, PartsHaveAllRowsAndOnlyTheLastSharesAny) {
  int cut = 0;
  for (int filter = 7; filter <= 32; ++filter) {
    const Schedule schedule = FastestOf(filter, 4);
    const ConvGeometry& g = TileOf(schedule);
    if (!g.has_groups()) continue;
    cut += g.row_parts > 1;
    EXPECT_GE(g.row_parts * g.taps(0), filter);
    EXPECT_LT((g.row_parts - 1) * g.taps(0), filter);
  }
  EXPECT_GE(cut, 5);
}

TEST(RowPartsTest, OthersAreNot) {
  EXPECT_EQ(TileOf(FastestOf(5, 1)).row_parts, 1) << "few taps";
  EXPECT_EQ(TileOf(FastestOf(2, 2)).row_parts, 1) << "very few taps";
  EXPECT_EQ(TileOf(FastestOf(9, 1, "f16")).row_parts, 1) << "one product";
  EXPECT_EQ(TileOf(FastestOf(9, 1, "f32", kA100)).row_parts, 1) << "warps";
}

}  // namespace
}  // namespace kiln
