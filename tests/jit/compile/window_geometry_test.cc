// How many outputs a thread of a pooling takes. Prevents that each computes
// where its window lies, and loads rows that the one above has loaded.
#include "jit/compile/window_geometry.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

PoolAttributes Pool(int64_t kernel, int64_t stride, int64_t dilation = 1) {
  PoolAttributes pool;
  pool.kernel_size = {kernel, kernel};
  pool.stride = {stride, stride};
  pool.padding = {kernel / 2, kernel / 2};
  pool.dilation = {dilation, dilation};
  return pool;
}

TEST(WindowGeometryTest, WindowsBelowEachOtherShareAThread) {
  EXPECT_EQ(PoolTall(Pool(3, 1), {8, 288, 35, 35}), 5);
  EXPECT_EQ(PoolTall(Pool(2, 2), {32, 256, 31, 31}), 4);
  // Loads are as many as registers hold.
  EXPECT_EQ(PoolTall(Pool(3, 2), {32, 256, 31, 31}), 3);
  EXPECT_EQ(PoolTall(Pool(5, 1), {8, 288, 35, 35}), 1);
}

TEST(WindowGeometryTest, StripsWasteNoRows) {
  EXPECT_EQ(PoolTall(Pool(3, 1), {64, 288, 4, 35}), 4);
  EXPECT_EQ(PoolTall(Pool(3, 1), {64, 1024, 1, 35}), 1);
}

TEST(WindowGeometryTest, FewOutputsHaveAThreadEach) {
  EXPECT_EQ(PoolTall(Pool(3, 1), {1, 64, 35, 35}), 1);
}

TEST(WindowGeometryTest, WindowsWithHolesShareNoRows) {
  EXPECT_EQ(PoolTall(Pool(3, 1, 2), {8, 288, 35, 35}), 1);
}

}  // namespace
}  // namespace kiln
