// How the threads of a reduction share its input. Prevents rows that are waited
// for more than once, multiprocessors without work, and caches that are emptied
// for a tensor that nobody reads again.
#include "jit/compile/reduce_geometry.h"

#include <gtest/gtest.h>

#include <bit>

#include "fmt/format.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/specialize.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

constexpr int kSms = 132;

ReduceView Rows(int64_t rows, int64_t length) {
  ReduceView view;
  view.kept0 = rows;
  view.reduced0 = length;
  return view;
}

ReduceView Columns(int64_t steps, int64_t columns) {
  ReduceView view;
  view.reduced0 = steps;
  view.kept1 = columns;
  return view;
}

ReduceWork Of(int bytes, int operands = 1) {
  ReduceWork work;
  work.bytes = bytes;
  work.operands = operands;
  return work;
}

// Elements that a thread has in flight before it uses the first.
int64_t InFlight(const ReduceGeometry& g) {
  return int64_t{g.lanes} * g.vector * g.at_once;
}

TEST(ReduceGeometryTest, RowsOfManyAreLoadedAtOnce) {
  for (const int bytes : {2, 4}) {
    for (const int64_t length : {64, 784, 3136, 4096, 8192}) {
      const ReduceGeometry g =
          ChooseReduceGeometry(Rows(8192, length), Of(bytes), kSms);
      EXPECT_EQ(g.vector * bytes, 16) << length;
      EXPECT_GE(InFlight(g), length) << length;
      EXPECT_LT(InFlight(g), 2 * length) << length;
      EXPECT_LE(g.vector * g.at_once, 32) << length;
      EXPECT_EQ(g.splits, 1);
    }
  }
}

// The mean of so many equal values is exact, so that a norm of them is zero.
TEST(ReduceGeometryTest, VectorsAtOnceAreAPowerOfTwo) {
  for (int64_t length = 4; length < 9000; length += 4) {
    for (const int64_t rows : {20, 600, 20000}) {
      for (const int operands : {1, 2, 3}) {
        const ReduceGeometry g =
            ChooseReduceGeometry(Rows(rows, length), Of(4, operands), kSms);
        EXPECT_TRUE(std::has_single_bit(static_cast<unsigned>(g.at_once)))
            << g.at_once << " of rows of " << length;
      }
    }
  }
}

TEST(ReduceGeometryTest, FewLanesShareARow) {
  EXPECT_EQ(ChooseReduceGeometry(Rows(8192, 4096), Of(4), kSms).lanes, 128);
  EXPECT_EQ(ChooseReduceGeometry(Rows(65536, 256), Of(4), kSms).lanes, 8);
}

// Eight lanes for each of a million short rows take up to three times as long
// as what they have is worth.
TEST(ReduceGeometryTest, ShortRowsHaveFewerLanes) {
  const auto lanes = [](int64_t length, int bytes) {
    return ChooseReduceGeometry(Rows(1 << 20, length), Of(bytes), kSms).lanes;
  };
  EXPECT_EQ(lanes(5, 4), 1);
  EXPECT_EQ(lanes(7, 4), 2);
  EXPECT_EQ(lanes(10, 4), 1) << "five pairs";
  EXPECT_EQ(lanes(10, 2), 1);
  EXPECT_EQ(lanes(14, 2), 2);
  EXPECT_EQ(lanes(12, 4), 1) << "three vectors";
  EXPECT_EQ(lanes(24, 4), 2);
  EXPECT_EQ(lanes(32, 4), 4);
  EXPECT_EQ(lanes(49, 4), 8);
  EXPECT_EQ(lanes(100, 4), 8);
}

TEST(ReduceGeometryTest, RowsThatFourDoesNotDivideAreReadInPairs) {
  EXPECT_EQ(ChooseReduceGeometry(Rows(1 << 20, 10), Of(2), kSms).vector, 2);
  EXPECT_EQ(ChooseReduceGeometry(Rows(8192, 1022), Of(4), kSms).vector, 2);
  EXPECT_EQ(ChooseReduceGeometry(Rows(8192, 1023), Of(4), kSms).vector, 1);
}

TEST(ReduceGeometryTest, TwoOperandsTakeTheRegistersOfOne) {
  const ReduceGeometry g =
      ChooseReduceGeometry(Rows(65536, 256), Of(4, 2), kSms);
  EXPECT_EQ(g.at_once, 4);
  EXPECT_EQ(g.lanes, 16);
}

TEST(ReduceGeometryTest, FewRowsHaveMoreThreads) {
  const ReduceGeometry many =
      ChooseReduceGeometry(Rows(8192, 4096), Of(4), kSms);
  const ReduceGeometry some =
      ChooseReduceGeometry(Rows(600, 4096), Of(4), kSms);
  const ReduceGeometry one =
      ChooseReduceGeometry(Rows(1, int64_t{1} << 24), Of(4), kSms);
  EXPECT_GT(some.lanes, many.lanes);
  EXPECT_EQ(some.splits, 1);
  EXPECT_LE(one.splits * one.threads, kSms * 1024);
  EXPECT_GE(one.splits * one.threads, kSms * 1024 * 9 / 10);
}

// Of 264 parts each would end within an access of all threads.
TEST(ReduceGeometryTest, PartsOfARowHaveWholeAccesses) {
  const auto splits = [](int64_t elements) {
    return ChooseReduceGeometry(Rows(1, elements), Of(4), kSms).splits;
  };
  EXPECT_EQ(splits(int64_t{1} << 24), 256);
  EXPECT_EQ(splits((int64_t{1} << 24) + 4), 264) << "none has";
}

// A last wave of few blocks has the device to itself, and uses a part of it.
TEST(ReduceGeometryTest, SplitsFillTheDeviceOnce) {
  for (const int64_t rows : {1, 3, 16, 64, 128}) {
    const ReduceGeometry g =
        ChooseReduceGeometry(Rows(rows, 1 << 24), Of(4), kSms);
    EXPECT_LE(g.blocks() * g.splits * g.threads, kSms * 1024) << rows;
    EXPECT_GE(g.blocks() * g.splits * g.threads, kSms * 1024 * 0.85) << rows;
  }
  // Where that leaves half idle, twice.
  EXPECT_EQ(ChooseReduceGeometry(Rows(150, 1 << 20), Of(4), kSms).splits, 3);
}

TEST(ReduceGeometryTest, ColumnsFillTheDeviceOnce) {
  ReduceView images = Columns(1024, 256);
  images.kept0 = 64;
  EXPECT_EQ(ChooseReduceGeometry(images, Of(4), kSms).splits, 1);
}

ReduceView Channels(int64_t batch, int64_t channels, int64_t pixels) {
  ReduceView view = Columns(channels, pixels);
  view.kept0 = batch;
  return view;
}

// Threads that have much in flight are few, and more where that is in single
// elements.
TEST(ReduceGeometryTest, ManyColumnsHaveFewLanes) {
  const ReduceGeometry even =
      ChooseReduceGeometry(Channels(64, 144, 36 * 36), Of(4), kSms);
  EXPECT_EQ(even.vector, 4);
  EXPECT_EQ(even.lanes, 4);
  EXPECT_EQ(even.at_once, 8);
  const ReduceGeometry odd =
      ChooseReduceGeometry(Channels(64, 144, 35 * 35), Of(4), kSms);
  EXPECT_EQ(odd.vector, 1);
  EXPECT_EQ(odd.lanes, 2);
  EXPECT_EQ(odd.at_once, 8);
  EXPECT_EQ(odd.splits, 1);
  // Each lane has as many steps as it has in flight.
  EXPECT_EQ(ChooseReduceGeometry(Channels(64, 64, 15 * 15), Of(4), kSms).lanes,
            8);
}

// Where lanes are as many as there may be, and have long ways, blocks share
// them.
TEST(ReduceGeometryTest, FewOfManyColumnsAreSplitIfTheyAreLong) {
  EXPECT_EQ(ChooseReduceGeometry(Columns(16384, 8192), Of(2), kSms).splits, 4);
  EXPECT_EQ(ChooseReduceGeometry(Columns(512, 8192), Of(2), kSms).splits, 1);
}

// Beside two tensors registers are for half as much of each.
TEST(ReduceGeometryTest, ManyColumnsOfTwoTensorsLoadLessAtOnce) {
  const ReduceView images = Channels(64, 144, 36 * 36);
  EXPECT_EQ(ChooseReduceGeometry(images, Of(4, 2), kSms).at_once, 4);
}

TEST(ReduceGeometryTest, ManyColumnsBehindLongProloguesHaveMoreThreads) {
  ReduceWork work = Of(4);
  work.prologue = 5;
  const ReduceGeometry odd =
      ChooseReduceGeometry(Channels(64, 144, 35 * 35), work, kSms);
  EXPECT_EQ(odd.lanes, 4);
  EXPECT_EQ(odd.at_once, 2);
}

TEST(ReduceGeometryTest, LongProloguesLoadLessAtOnce) {
  ReduceWork work = Of(4);
  work.prologue = 5;
  EXPECT_EQ(ChooseReduceGeometry(Rows(8192, 4096), work, kSms).at_once, 2);
  work.prologue = 9;
  EXPECT_EQ(ChooseReduceGeometry(Rows(8192, 4096), work, kSms).at_once, 1);
}

// What is computed in front of each step takes longer than to meet.
TEST(ReduceGeometryTest, FewColumnsBehindLongProloguesHaveMoreLanes) {
  ReduceView images = Columns(20, 900);
  images.kept0 = 8;
  ReduceWork work = Of(2);
  EXPECT_EQ(ChooseReduceGeometry(images, work, kSms).lanes, 4);
  work.prologue = 5;
  EXPECT_EQ(ChooseReduceGeometry(images, work, kSms).lanes, 16);
}

// They might spill: registers are for what is in flight.
TEST(ReduceGeometryTest, OnlyShortProloguesAreBoundInRegisters) {
  ReduceWork work = Of(4);
  EXPECT_EQ(ChooseReduceGeometry(Rows(8192, 4096), work, kSms).min_blocks, 4);
  work.reads_more = true;
  EXPECT_EQ(ChooseReduceGeometry(Rows(8192, 4096), work, kSms).min_blocks, 0);
  work.reads_more = false;
  work.prologue = 3;
  EXPECT_EQ(ChooseReduceGeometry(Rows(8192, 4096), work, kSms).min_blocks, 0);
}

TEST(ReduceGeometryTest, ColumnsLieSideBySide) {
  const ReduceGeometry g =
      ChooseReduceGeometry(Columns(256, 200704), Of(2), kSms);
  EXPECT_FALSE(g.rows());
  EXPECT_EQ(g.vector, 4);
  EXPECT_EQ(g.at_once, 8);
}

bool Streams(const std::string& text) {
  const Schedule schedule = Fastest(text);
  const Kernel& kernel = schedule.kernels.front();
  EXPECT_TRUE(kernel.reduce.has_value()) << text;
  const std::string unit = WriteUnit(MakeKernelSpec(schedule, kernel));
  const bool streams =
      unit.find("kiln::Fetch<true>(t.i0") != std::string::npos ||
      unit.find("kiln::LoadOnce(t.i0, at.i)") != std::string::npos;
  EXPECT_EQ(streams, kernel.reduce->streams) << text;
  return streams;
}

TEST(ReduceStreamTest, WhatIsReadOnceIsNotKept) {
  EXPECT_TRUE(
      Streams("input x: f32[4096,4096]\ny = mean(x, dim=1)\noutput y\n"));
  EXPECT_TRUE(
      Streams("input x: f32[64,256,56,56]\ny = amax(x, dim=1)\noutput y\n"));
  EXPECT_TRUE(
      Streams("input x: f32[64,256,56,56]\nq = mul(x, x)\n"
              "y = sum(q, dim=[2,3])\noutput y\n"));
  EXPECT_TRUE(
      Streams("input x: bf16[64,256,57,57]\ny = mean(x, dim=1)\noutput y\n"))
      << "in single elements";
}

TEST(ReduceStreamTest, LinesThatOthersReadStay) {
  EXPECT_FALSE(
      Streams("input x: f32[128,2048,7,7]\ny = mean(x, dim=1)\noutput y\n"));
}

// Where a row's results are written, they take the place of what is read.
TEST(ReduceStreamTest, RowsThatEndInAReductionAreNotKept) {
  const auto streams = [](const std::string& end) {
    const Schedule schedule = Fastest(
        "input x: f32[32,64,128,128]\n"
        "m = mean(x, dim=[2,3], keepdim=true)\nd = sub(x, m)\n" +
        end + "output y\n");
    const Kernel& kernel = schedule.kernels.front();
    EXPECT_TRUE(kernel.rows.has_value());
    const std::string unit = WriteUnit(MakeKernelSpec(schedule, kernel));
    EXPECT_EQ(unit.find("kStreams = true") != std::string::npos,
              kernel.rows->streams);
    return kernel.rows->streams;
  };
  EXPECT_TRUE(streams("y = amax(d, dim=[2,3])\n"));
  EXPECT_FALSE(streams("y = relu(d)\n"));
}

TEST(ReduceStreamTest, SmallTensorsStay) {
  EXPECT_FALSE(
      Streams("input x: f32[512,4096]\ny = mean(x, dim=1)\noutput y\n"));
}

TEST(ReduceStreamTest, WhatIsReadAgainStays) {
  EXPECT_FALSE(
      Streams("input x: f32[4096,4096]\ny = mean(x, dim=1)\n"
              "z = amax(x, dim=0)\noutput y\noutput z\n"));
}

// The copy to an output comes behind the reduction.
TEST(ReduceStreamTest, WhatIsCopiedStays) {
  EXPECT_FALSE(
      Streams("input x: f32[4096,4096]\ny = mean(x, dim=1)\n"
              "output y\noutput x\n"));
}

// So much that caches keep none of it anyway, but for columns of 16 bits.
TEST(ReduceStreamTest, WhatIsLargerThanCachesStays) {
  const auto products = [](const std::string& rows) {
    return Streams("input x: " + rows + "\ninput z: " + rows +
                   "\np = mul(x, z)\ny = sum(p, dim=1)\noutput y\n");
  };
  EXPECT_TRUE(products("f32[4096,4096]"));
  EXPECT_FALSE(products("f32[16384,4096]"));
  EXPECT_FALSE(
      Streams("input x: f32[65536,4096]\ny = mean(x, dim=1)\noutput y\n"));
  EXPECT_TRUE(
      Streams("input x: f16[64,4096,1024]\ny = mean(x, dim=1)\noutput y\n"));
}

}  // namespace
}  // namespace kiln
