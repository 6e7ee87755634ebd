// Longer than 400 lines because each keeper of rows has plans of its own.
// Which schedule normalisations and softmax get: each rung of the ladder for a
// shape where it wins, and the plain one where none fits.
#include "jit/compile/row_residency.h"

#include <gtest/gtest.h>

#include "fmt/format.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/schedule.h"
#include "jit/compile/specialize.h"
#include "jit/plan/plan_text.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

constexpr char kP1[] = R"(
input x: f32[112,64,512,512]
param w: f32[64]
param b: f32[64]
y = group_norm(x, w, b, num_groups=8)
output y
)";

std::string GroupNorm(const std::string& type, const std::string& dims,
                      int groups) {
  return "input x: " + type + dims +
         "\ny = group_norm(x, num_groups=" + std::to_string(groups) +
         ")\noutput y\n";
}

std::vector<Schedule> SchedulesOf(const std::string& text,
                                  const Target& target = kH100) {
  return MakeSchedules(*Canonicalize(*ParsePlanText(text)), target,
                       Room::kTight);
}

// The rows of a plan that is one kernel.
RowGeometry RowsOf(const std::string& text, const Target& target = kH100) {
  const std::vector<Schedule> schedules = SchedulesOf(text, target);
  EXPECT_EQ(schedules[0].kernels.size(), 1u);
  EXPECT_TRUE(schedules[0].kernels[0].rows.has_value());
  return schedules[0].kernels[0].rows.value_or(RowGeometry{});
}

bool IsPlain(const std::string& text, const Target& target = kH100) {
  const std::vector<Schedule> schedules = SchedulesOf(text, target);
  bool plain = schedules.size() == 1;
  for (const Kernel& kernel : schedules[0].kernels) plain &= !kernel.rows;
  return plain;
}

TEST(RowResidencyTest, RowsOfMegabytesAreSharedByTheWholeGrid) {
  const RowGeometry rows = RowsOf(kP1);
  EXPECT_EQ(rows.keeper, RowKeeper::kTeam);
  EXPECT_EQ(rows.team, 132);
  EXPECT_GE(rows.team * rows.chunks * rows.chunk, rows.length);
  EXPECT_GE(rows.slots, 2 * rows.chunks);  // two rows in flight
  EXPECT_LE(rows.dynamic_shared_bytes, 227 * 1024);
}

TEST(RowResidencyTest, ATeamHasAFallbackAndRecordsZeroedOnce) {
  const std::vector<Schedule> schedules = SchedulesOf(kP1);
  ASSERT_EQ(schedules.size(), 2u);
  EXPECT_TRUE(schedules[0].requires_.cooperative);
  EXPECT_EQ(schedules[0].requires_.min_sm_count, 132);
  EXPECT_EQ(schedules[1].requires_, Requirements{});
  ASSERT_EQ(schedules[0].zero.size(), 1u);
  EXPECT_EQ(schedules[0].zero[0].when, ZeroWhen::kOnce);
  EXPECT_EQ(schedules[0].zero[0].size_bytes, 896 * (132 * 8 + 32) + 132 * 8);
}

// A fallback with machine code of its own would cost as much to compile.
TEST(RowResidencyTest, TheFallbackOfATeamIsTheSameKernelInTurns) {
  const std::vector<Schedule> schedules = SchedulesOf(kP1);
  ASSERT_EQ(schedules.size(), 2u);
  ASSERT_EQ(schedules[1].kernels.size(), 1u);
  const KernelSpec fast = MakeKernelSpec(schedules[0], schedules[0].kernels[0]);
  const KernelSpec free = MakeKernelSpec(schedules[1], schedules[1].kernels[0]);
  EXPECT_EQ(WriteUnit(fast), WriteUnit(free));
  EXPECT_TRUE(fast.entries[0].earlier_grids.empty());
  EXPECT_FALSE(free.entries[0].cooperative);
  using Grid = std::array<uint32_t, 3>;
  EXPECT_EQ(free.entries[0].earlier_grids,
            (std::vector<Grid>{{132, 2, 1}, {132, 3, 1}}));
  EXPECT_EQ(free.entries[0].grid, (Grid{132, 1, 1}));
  EXPECT_EQ(schedules[1].zero, schedules[0].zero);
}

// Zeroed before the first kernel, used by the last: nothing may lie there in
// between.
TEST(RowResidencyTest, NothingSharesMemoryWithTheRecords) {
  const Schedule schedule = SchedulesOf(R"(
input x: f32[64,16,256,256]
p = avg_pool2d(x, kernel_size=3, stride=1, padding=1)
y = group_norm(p, num_groups=2)
output y
)")[0];
  ASSERT_EQ(schedule.zero.size(), 1u);
  const ZeroRange& zero = schedule.zero[0];
  for (size_t i = 0; i < schedule.homes.size(); ++i) {
    const std::optional<Place>& home = schedule.homes[i];
    if (!home || home->slot >= 0) continue;
    const int64_t end =
        home->offset_bytes + SizeBytes(schedule.lowered.values[i].desc);
    EXPECT_TRUE(end <= zero.offset_bytes ||
                home->offset_bytes >= zero.offset_bytes + zero.size_bytes);
  }
}

TEST(RowResidencyTest, RowsThatABlockWouldHaveAloneAreSpreadOverClusters) {
  const std::string plan =
      "input x: f32[2048,50257]\ny = softmax(x, dim=1)\noutput y\n";
  const RowGeometry rows = RowsOf(plan);
  EXPECT_EQ(rows.keeper, RowKeeper::kBlock);
  EXPECT_GT(rows.cluster, 1);
  EXPECT_GE(rows.blocks(), 128);
  // Clusters of this size are what every device of the architecture offers.
  EXPECT_LE(rows.cluster, 8);
  EXPECT_EQ(SchedulesOf(plan).size(), 1u);
}

TEST(RowResidencyTest, ShortRowsNeedNothingOfTheDevice) {
  for (const Target& target : {kH100, kA100, kT4}) {
    for (const char* dims : {"[8192,768]", "[8192,4096]", "[65536,64]"}) {
      const std::string plan = GroupNorm("f16", dims, 1);
      EXPECT_EQ(RowsOf(plan, target).cluster, 1);
      EXPECT_EQ(SchedulesOf(plan, target).size(), 1u);
    }
  }
}

TEST(RowResidencyTest, ShortRowsStayInRegisters) {
  const RowGeometry tiny = RowsOf(GroupNorm("f32", "[65536,64]", 1));
  EXPECT_EQ(tiny.keeper, RowKeeper::kWarp);
  EXPECT_EQ(tiny.lanes, 8);  // a line of memory at once
  EXPECT_EQ(tiny.dynamic_shared_bytes, 0);
  const RowGeometry longest = RowsOf(GroupNorm("f32", "[65536,1024]", 1));
  EXPECT_EQ(longest.keeper, RowKeeper::kWarp);
  EXPECT_EQ(longest.lanes, 32);
}

// Of whole warps, so many that each place has an element where that can be.
// Eight lanes would have an element or two each, and issue as much as for six;
// as much as for twelve, where two of 16 bits are one access.
TEST(RowResidencyTest, ShortRowsHaveFewLanes) {
  const auto lanes = [](int length, const std::string& type) {
    return RowsOf("input x: " + type + "[8,512,256," + std::to_string(length) +
                  "]\ny = softmax(x, dim=3)\noutput y\n")
        .lanes;
  };
  EXPECT_EQ(lanes(5, "f32"), 1);
  EXPECT_EQ(lanes(7, "f32"), 2);
  EXPECT_EQ(lanes(8, "f32"), 2);
  EXPECT_EQ(lanes(10, "f32"), 2);
  EXPECT_EQ(lanes(9, "f16"), 2);
  EXPECT_EQ(lanes(10, "f16"), 1);
  EXPECT_EQ(lanes(30, "f16"), 4);
  EXPECT_EQ(lanes(21, "f32"), 4);
  EXPECT_EQ(lanes(49, "f16"), 8);
}

TEST(RowResidencyTest, LongerRowsStayInTheRegistersOfSeveralWarps) {
  const RowGeometry rows = RowsOf(GroupNorm("f16", "[4096,5120]", 1));
  EXPECT_EQ(rows.keeper, RowKeeper::kWarp);
  EXPECT_EQ(rows.length % (rows.lanes * rows.vector), 0);
  EXPECT_EQ(rows.threads, rows.lanes);
  EXPECT_EQ(rows.dynamic_shared_bytes, 0);
  EXPECT_EQ(RowsOf(GroupNorm("f32", "[4096,20000]", 1)).keeper,
            RowKeeper::kBlock);
}

// Code that is repeated for each element takes half as many.
TEST(RowResidencyTest, LongCodeIsRepeatedLess) {
  const RowGeometry rows = RowsOf(R"(
input x: f32[4096,384]
n = group_norm(x, num_groups=1)
g = gelu(n)
y = add(g, x)
output y
)");
  EXPECT_EQ(rows.keeper, RowKeeper::kWarp);
  EXPECT_EQ(rows.lanes, 32);
}

TEST(RowResidencyTest, ElementsAreKeptAsTheyAreOrAsTheyWereRead) {
  const RowGeometry f32 = RowsOf(GroupNorm("f32", "[64,64,56,56]", 8));
  EXPECT_TRUE(f32.copies);
  EXPECT_EQ(f32.kept_bytes, 4);
  const RowGeometry bf16 = RowsOf(GroupNorm("bf16", "[64,64,56,56]", 8));
  EXPECT_TRUE(bf16.copies);
  EXPECT_EQ(bf16.kept_bytes, 2);
  // Rather f32 than the same four operations twice.
  const RowGeometry made = RowsOf(R"(
input x: bf16[64,64,56,56]
a = tanh(x)
b = sigmoid(a)
c = mish(b)
d = gelu(c)
y = group_norm(d, num_groups=8)
output y
)");
  EXPECT_FALSE(made.copies);
  EXPECT_EQ(made.kept_bytes, 4);
  // Copies are of one tensor.
  const RowGeometry sum = RowsOf(R"(
input x: bf16[64,64,56,56]
input r: bf16[64,64,56,56]
a = add(x, r)
y = group_norm(a, num_groups=8)
output y
)");
  EXPECT_FALSE(sum.copies);
}

// Of long rows, for which shared memory would have room once: powers of each
// element twice rather than one row at a time.
TEST(RowResidencyTest, LongRowsOf16BitsAreKeptInFrontOfASoftmax) {
  const auto softmax = [](const std::string& type, int length) {
    return RowsOf(
        fmt::format("input x: {}[1024,{}]\ny = softmax(x, dim=1)\noutput y\n",
                    type, length));
  };
  EXPECT_EQ(softmax("f16", 32000).kept_bytes, 2);
  EXPECT_TRUE(softmax("f16", 32000).reads_again);
  EXPECT_EQ(softmax("f16", 20000).kept_bytes, 4);
  EXPECT_FALSE(softmax("f32", 32000).reads_again);
}

TEST(RowResidencyTest, LongRowsTakeDynamicSharedMemory) {
  const RowGeometry rows = RowsOf(GroupNorm("f32", "[4096,16384]", 1), kA100);
  EXPECT_GE(rows.dynamic_shared_bytes, 16384 * 4);
  EXPECT_LE(rows.dynamic_shared_bytes, 163 * 1024);
}

// A second variant would cost as much to compile as the first.
TEST(RowResidencyTest, SharedMemoryNeedsNoFallback) {
  const std::vector<Schedule> schedules =
      SchedulesOf(GroupNorm("f32", "[4096,16384]", 1), kA100);
  EXPECT_EQ(schedules.size(), 1u);
  EXPECT_EQ(schedules[0].requires_, Requirements{});
}

TEST(RowResidencyTest, ShortSlicesOfATeamTakeTurns) {
  const RowGeometry rows = RowsOf(GroupNorm("f32", "[32,3,512,512]", 3));
  EXPECT_EQ(rows.keeper, RowKeeper::kTeam);
  EXPECT_GT(rows.row_groups, 1);
  EXPECT_EQ(RowsOf(kP1).row_groups, 1);
}

// Rows of 1.6 MB: a slice of each in every multiprocessor would be short.
TEST(RowResidencyTest, TeamsShareManyRowsOut) {
  const RowGeometry rows = RowsOf(GroupNorm("f32", "[64,128,56,56]", 1));
  EXPECT_EQ(rows.keeper, RowKeeper::kTeam);
  EXPECT_GT(rows.teams, 1);
  EXPECT_LE(rows.teams * rows.team, 132);
  EXPECT_GE(int64_t{rows.team} * rows.chunks * rows.chunk, rows.length);
  EXPECT_EQ(RowsOf(kP1).teams, 1);
}

TEST(RowResidencyTest, TeamsAskForAllTheirBlocks) {
  const Schedule schedule =
      SchedulesOf(GroupNorm("f32", "[64,128,56,56]", 1))[0];
  const RowGeometry& rows = *schedule.kernels[0].rows;
  EXPECT_EQ(schedule.requires_.min_sm_count, rows.team * rows.teams);
  ASSERT_EQ(schedule.zero.size(), 1u);
  EXPECT_EQ(schedule.zero[0].size_bytes,
            64 * (rows.team * 8 + 32) + rows.team * rows.teams * 8);
}

TEST(RowResidencyTest, ChunksAreWholeLinesOfMemory) {
  for (const char* type : {"f32", "f16"}) {
    const RowGeometry rows = RowsOf(GroupNorm(type, "[32,64,258,256]", 8));
    EXPECT_EQ(rows.keeper, RowKeeper::kTeam);
    EXPECT_EQ(rows.chunk % 64, 0);
  }
}

std::string NormOfSum(const std::string& type) {
  return "input x: " + type + "[32,64,256,256]\ninput r: " + type +
         "[32,64,256,256]\na = add(x, r)\nn = group_norm(a, num_groups=8)\n"
         "m = mul(n, r)\ny = add(m, x)\noutput y\noutput m\n";
}

std::string NormThenSilu(const std::string& type, const std::string& dims) {
  return "input x: " + type + dims +
         "\nn = group_norm(x, num_groups=8)\ny = silu(n)\noutput y\n";
}

TEST(RowResidencyTest, OpsBehindANormHaveMoreWarpsOfATeam) {
  const RowGeometry alone = RowsOf(kP1);
  const RowGeometry silu = RowsOf(NormThenSilu("f16", "[32,64,256,256]"));
  EXPECT_EQ(silu.keeper, RowKeeper::kTeam);
  EXPECT_GT(silu.finishers, alone.finishers);
  EXPECT_EQ(silu.finished_at_once, 2);
}

// Else their threads would need more registers than so many have.
TEST(RowResidencyTest, ManyTensorsOf16BitsHaveFewerWarpsOfATeam) {
  const RowGeometry rows = RowsOf(NormOfSum("f16"));
  EXPECT_EQ(rows.keeper, RowKeeper::kTeam);
  EXPECT_EQ(rows.finishers, RowsOf(kP1).finishers);
  EXPECT_EQ(rows.finished_at_once, 1);
}

// 24 KB of a row: two chunks of 12 KB would leave a third of a turn idle.
TEST(RowResidencyTest, ChunksAreWholeTurnsOfFinishers) {
  const RowGeometry rows = RowsOf(NormThenSilu("f32", "[64,128,112,224]"));
  EXPECT_EQ(rows.keeper, RowKeeper::kTeam);
  EXPECT_LT(rows.TurnsOf(rows.chunk), rows.chunk * 11 / 10);
}

// A block that has such a row alone loads, computes and stores by turns.
TEST(RowResidencyTest, RowsWithoutRoomForAnotherMayHaveTeams) {
  const RowGeometry rows =
      RowsOf("input x: f32[2048,1,1,32000]\ny = softmax(x, dim=3)\noutput y\n");
  EXPECT_EQ(rows.keeper, RowKeeper::kTeam);
  EXPECT_GT(rows.teams, 1);
  EXPECT_EQ(
      RowsOf("input x: f32[4096,1,1,16384]\ny = softmax(x, dim=3)\noutput y\n")
          .keeper,
      RowKeeper::kBlock);
}

// Two rows of 100 KB fit on a multiprocessor, and four of 50 KB.
TEST(RowResidencyTest, LargeRowsOfAMultiprocessorBeginInTurns) {
  const RowGeometry rows = RowsOf(GroupNorm("f32", "[32,256,56,56]", 32));
  EXPECT_EQ(rows.keeper, RowKeeper::kBlock);
  EXPECT_EQ(rows.turns, 2);
  EXPECT_EQ(rows.turn_blocks, 132);
  EXPECT_GT(rows.turn_cycles, 5000);
  EXPECT_EQ(RowsOf(GroupNorm("f32", "[32,512,28,28]", 32)).turns, 1);
  EXPECT_EQ(RowsOf(GroupNorm("f32", "[4,256,56,56]", 32)).turns, 1);
}

TEST(RowResidencyTest, VectorsDivideTheRow) {
  EXPECT_EQ(RowsOf(GroupNorm("f32", "[7,6,13,12]", 3)).vector, 4);
  EXPECT_EQ(RowsOf(GroupNorm("f32", "[7,6,13,11]", 3)).vector, 2);
  EXPECT_EQ(RowsOf(GroupNorm("f32", "[7,3,13,11]", 3)).vector, 1);
  EXPECT_EQ(RowsOf(GroupNorm("bf16", "[64,64,16,16]", 8)).vector, 8);
}

TEST(RowResidencyTest, WhatDoesNotFitIsPlain) {
  EXPECT_TRUE(IsPlain(GroupNorm("f32", "[2,8,2048,2048]", 1)));
  // Bulk copies take multiples of 16 bytes.
  EXPECT_TRUE(IsPlain(GroupNorm("f32", "[64,2,1023,1025]", 1)));
  EXPECT_TRUE(IsPlain(kP1, kA100));
  EXPECT_TRUE(IsPlain(kP1, kT4));
}

std::string Softmax(const std::string& dims, int dim) {
  return "input x: f32" + dims + "\ny = softmax(x, dim=" + std::to_string(dim) +
         ")\noutput y\n";
}

// Less the mean along `dim`.
std::string Centred(const std::string& x, int dim) {
  return fmt::format(
      "input x: {}\nm = mean(x, dim={}, keepdim=true)\ny = sub(x, m)\n"
      "output y\n",
      x, dim);
}

TEST(RowResidencyTest, LongRowsSideBySideAreKeptInStrips) {
  for (const Target& target : {kH100, kA100}) {
    const RowGeometry rows = RowsOf(Centred("f32[16,768,128,128]", 1), target);
    EXPECT_EQ(rows.keeper, RowKeeper::kColumns);
    EXPECT_EQ(rows.pitch, 128 * 128);
    EXPECT_EQ(rows.vector, 4);
    const int strip = rows.threads / rows.lanes * rows.vector;
    EXPECT_GE(strip * 4, 128);  // bytes: whole lines
    EXPECT_EQ(rows.blocks() * strip, 16 * 128 * 128);
  }
  EXPECT_EQ(RowsOf(Centred("f32[16,768,128,128]", 1), kT4).keeper,
            RowKeeper::kColumns);
  EXPECT_EQ(RowsOf(Centred("f32[16,1100,127,129]", 1)).vector, 1);
  // Narrower strips for longer rows.
  EXPECT_EQ(RowsOf(Centred("f32[64,1024,16,16]", 1)).keeper,
            RowKeeper::kColumns);
  EXPECT_TRUE(IsPlain(Softmax("[4,65536,64]", 1)));
}

// Shared memory takes 7 us, however small they are.
TEST(RowResidencyTest, RowsSideBySideAreHeldInRegisters) {
  for (const Target& target : {kH100, kA100, kT4}) {
    const RowGeometry rows = RowsOf(Centred("f32[16,64,128,128]", 1), target);
    EXPECT_EQ(rows.keeper, RowKeeper::kWarpChain);
    EXPECT_EQ(rows.pitch, 128 * 128);
    EXPECT_EQ(rows.vector, 2);
    EXPECT_EQ(rows.blocks() * rows.threads / rows.lanes * rows.vector,
              16 * 128 * 128);
  }
  EXPECT_EQ(RowsOf(Centred("f32[16,64,127,129]", 1)).vector, 1);
}

constexpr char kMeanOfImage[] = R"(
input x: f32[32,256,56,56]
y = group_norm(x, num_groups=32)
s = silu(y)
m = mean(s, dim=[2,3])
)";

// Of the threads of a block side by side.
int64_t ColumnsOf(const RowGeometry& rows) { return rows.threads / rows.lanes; }

TEST(RowResidencyTest, StripsHaveHardlyAnEmptyPlace) {
  EXPECT_EQ(ColumnsOf(RowsOf(Centred("f32[1,480,1100,75]", 2))), 8)
      << "a tenth of 75";
  EXPECT_EQ(ColumnsOf(RowsOf(Centred("f32[32,768,20,20]", 1))), 8)
      << "lines of memory";
}

TEST(RowResidencyTest, RowsSideBySideHaveThreadsForTheirLength) {
  const auto lanes = [](const char* x) { return RowsOf(Centred(x, 1)).lanes; };
  EXPECT_EQ(lanes("f32[256,10,33,33]"), 1);
  EXPECT_EQ(lanes("f32[16,21,128,128]"), 2);
  EXPECT_EQ(lanes("f16[16,21,128,128]"), 1) << "of so many elements";
  EXPECT_EQ(lanes("f32[32,64,56,56]"), 4);
  EXPECT_EQ(lanes("f16[2,150,512,512]"), 8);
  EXPECT_EQ(lanes("f32[16,768,32,32]"), 64) << "in shared memory";
}

// Chains compute rows' numbers of each other alone.
TEST(RowResidencyTest, NumbersThatNeedOthersAreNotTakenInRegisters) {
  EXPECT_EQ(RowsOf("input x: f32[2,64,20,20]\ninput z: f32[2,1,20,20]\n"
                   "m = mean(x, dim=1, keepdim=true)\nt = mul(m, z)\n"
                   "y = sub(x, t)\noutput y\n")
                .keeper,
            RowKeeper::kColumns);
}

// With half of the multiprocessors idle. Merging costs what more would gain.
TEST(RowResidencyTest, FewRowsSideBySideHaveMoreThreads) {
  EXPECT_EQ(RowsOf(Centred("f32[1,96,40,40]", 1)).lanes, 16);
  EXPECT_EQ(RowsOf(Centred("f32[16,96,40,40]", 1)).lanes, 8);
  EXPECT_EQ(RowsOf(Centred("f32[8,40,15,15]", 1)).lanes, 4)
      << "five elements for each of eight";
}

// A multiprocessor has one block of 512 threads at a time.
TEST(RowResidencyTest, OneWaveOfLargeBlocksHoldsRowsSideBySide) {
  EXPECT_EQ(RowsOf(Centred("f32[1,960,14,14]", 1)).keeper,
            RowKeeper::kWarpChain);
  EXPECT_EQ(RowsOf(Centred("f32[64,960,14,14]", 1)).keeper,
            RowKeeper::kColumns);
}

TEST(RowResidencyTest, SmallImagesSideBySideAreHeldInRegisters) {
  EXPECT_EQ(RowsOf("input x: f32[64,256,14,14]\ny = softmax(x, dim=2)\n"
                   "output y\n")
                .keeper,
            RowKeeper::kWarpChain);
}

TEST(RowResidencyTest, AMeanOfWhatRowsBecomeIsTakenOnChip) {
  const Schedule schedule =
      SchedulesOf(std::string(kMeanOfImage) + "t = tanh(m)\noutput t\n")[0];
  ASSERT_EQ(schedule.kernels.size(), 1u);
  const Kernel& kernel = schedule.kernels[0];
  ASSERT_TRUE(kernel.rows.has_value());
  EXPECT_EQ(kernel.rows->segment, 56 * 56);
  EXPECT_EQ(kernel.rows->length % kernel.rows->segment, 0);
  EXPECT_EQ(kernel.group.tail_epilogue.size(), 1u);
  EXPECT_EQ(kernel.stores.size(), 1u);
  EXPECT_EQ(schedule.workspace_bytes, 0);
}

// What else is read must be written.
TEST(RowResidencyTest, AMeanBesideTheRowsIsAKernelOfItsOwn) {
  const Schedule schedule =
      SchedulesOf(std::string(kMeanOfImage) + "output m\noutput s\n")[0];
  ASSERT_EQ(schedule.kernels.size(), 2u);
  EXPECT_TRUE(schedule.kernels[0].rows.has_value());
  EXPECT_EQ(schedule.kernels[0].rows->segment, 0);
}

TEST(RowResidencyTest, SegmentsLieWithinRows) {
  for (const char* dims : {"1", "[0,2,3]", "[1,2,3]"}) {
    const Schedule schedule = SchedulesOf(
        std::string("input x: f32[32,256,56,56]\n") +
        "y = group_norm(x, num_groups=32)\nm = mean(y, dim=" + dims +
        ")\noutput m\n")[0];
    for (const Kernel& kernel : schedule.kernels) {
      EXPECT_FALSE(kernel.rows.has_value() && kernel.group.tail >= 0) << dims;
    }
  }
}

// The prologue's result is kept, used again and stored.
TEST(RowResidencyTest, WhatMakesTheRowAndWhatUsesItJoin) {
  const Schedule schedule = SchedulesOf(R"(
input x: bf16[32,64,32,32]
input r: bf16[32,64,32,32]
a = add(x, r)
y = group_norm(a, num_groups=8)
s = silu(y)
o = add(s, a)
output o: bf16
output a
)")[0];
  ASSERT_EQ(schedule.kernels.size(), 1u);
  EXPECT_EQ(schedule.kernels[0].group.prologue.size(), 1u);
  EXPECT_EQ(schedule.kernels[0].stores.size(), 2u);
  EXPECT_EQ(schedule.workspace_bytes, 0);
}

// The reduction reads `a` before the normalisation's kernel could make it.
TEST(RowResidencyTest, AValueThatIsNeededEarlierIsMadeBefore) {
  const std::vector<Schedule> schedules = SchedulesOf(R"(
input x: f32[64,64,32,32]
a = relu(x)
m = amax(a, dim=[0,2,3], keepdim=true)
y = group_norm(a, num_groups=8)
o = mul(y, m)
output o
)");
  const Schedule& schedule = schedules[0];
  ASSERT_GE(schedule.kernels.size(), 3u);
  EXPECT_TRUE(schedule.kernels.back().rows.has_value());
  EXPECT_TRUE(schedule.kernels.back().group.prologue.empty());
}

// A third of a row is no part that whole blocks of a cluster have.
TEST(RowResidencyTest, StatisticsOfTwoNormsStayApart) {
  const Schedule schedule = SchedulesOf(R"(
input x: f32[64,96,32,32]
y = group_norm(x, num_groups=24)
t = tanh(y)
z = group_norm(t, num_groups=8)
output z
)")[0];
  ASSERT_EQ(schedule.kernels.size(), 2u);
  for (const Kernel& kernel : schedule.kernels) {
    EXPECT_TRUE(kernel.rows.has_value());
    EXPECT_EQ(kernel.group.epilogue.empty(), false);
  }
}

TEST(RowResidencyTest, SpecsAskForWhatTheScheduleDeclares) {
  const Schedule schedule = SchedulesOf(kP1)[0];
  const KernelSpec spec = MakeKernelSpec(schedule, schedule.kernels[0]);
  ASSERT_EQ(spec.entries.size(), 1u);
  EXPECT_TRUE(spec.entries[0].cooperative);
  EXPECT_EQ(spec.entries[0].grid[0], 132u);
  EXPECT_LE(spec.entries[0].dynamic_shared_bytes,
            schedule.requires_.shared_optin_bytes);
}

// f16 [3,1024,60,60], silu, softmax over channels, an average of windows: 66 us
// with a kernel for silu, one for the statistics, and the powers taken by the
// pooling; torch.compile 58.
TEST(RowResidencyTest, APoolingLeavesRowsToTheKernelThatMakesThem) {
  constexpr char kPlan[] =
      "input x: f16[3,256,60,60]\nv = {}(x)\nn = {}\n"
      "y = avg_pool2d(n, kernel_size=4, stride=4)\noutput y\n";
  for (const char* norm :
       {"softmax(v, dim=1)", "group_norm(v, num_groups=8)"}) {
    const Schedule schedule =
        Fastest(fmt::format(fmt::runtime(kPlan), "silu", norm));
    ASSERT_EQ(schedule.kernels.size(), 2u) << norm;
    EXPECT_TRUE(schedule.kernels[0].rows.has_value()) << norm;
    EXPECT_TRUE(schedule.kernels[1].group.prologue.empty()) << norm;
    // Both may compute what is short: neither writes elements.
    const Schedule shorter =
        Fastest(fmt::format(fmt::runtime(kPlan), "relu", norm));
    ASSERT_EQ(shorter.kernels.size(), 2u) << norm;
    EXPECT_FALSE(shorter.kernels[1].group.prologue.empty()) << norm;
  }
}

}  // namespace
}  // namespace kiln
