// The interpreter on small programs written by hand. Prevents that it agrees
// with kernels by being wrong as they are, and that it overlooks or mistakes
// what it is there to find.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "tests/ptx/program_testing.h"

namespace kiln::ptx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<uint32_t> Iota(size_t count) {
  std::vector<uint32_t> words(count);
  std::iota(words.begin(), words.end(), 0);
  return words;
}

TEST(PtxProgramTest, LanesMeetAgainBehindBranches) {
  const Outcome outcome = RunBody(
      "and.b32 %r1, %t, 3;\n"
      "mov.u32 %r2, 0;\n"
      "$again:\n"
      "setp.eq.u32 %p1, %r1, 0;\n"
      "@%p1 bra $end;\n"
      "add.s32 %r2, %r2, %r1;\n"
      "sub.s32 %r1, %r1, 1;\n"
      "bra.uni $again;\n"
      "$end:\n"
      "shfl.sync.bfly.b32 %r3|%p2, %r2, 1, 31, -1;\n"
      "st.global.u32 [%own_out], %r3;",
      {}, 4, Threads(4));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(outcome.words, ElementsAre(1, 0, 6, 3));
}

// A lane that the clamp word keeps from another's value keeps its own.
TEST(PtxProgramTest, ShufflesStayInSegments) {
  const Outcome outcome = RunBody(
      "shfl.sync.down.b32 %r1|%p1, %t, 1, 7171, -1;\n"
      "selp.u32 %r2, 100, 0, %p1;\n"
      "add.u32 %r1, %r1, %r2;\n"
      "st.global.u32 [%own_out], %r1;",
      {}, 8, Threads(8));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(outcome.words, ElementsAre(101, 102, 103, 3, 105, 106, 107, 7));
}

TEST(PtxProgramTest, ArithmeticIsExact) {
  const Outcome outcome = RunBody(
      "{.reg .b16 low, high; .reg .f32 x; mov.b32 {low, high}, 1006648320;"
      " cvt.f32.f16 x, high; st.global.f32 [%out], x;}\n"
      "fma.rm.f32 %f1, 0f3F800001, 0f3F800001, 0f00000000;\n"
      "st.global.f32 [%out+4], %f1;\n"
      "max.NaN.f32 %f2, 0f7FC00000, 0f3F800000;\n"
      "st.global.f32 [%out+8], %f2;\n"
      "cvt.rn.f16x2.f32 %r1, 0f3F800000, 0fC0000000;\n"
      "st.global.u32 [%out+12], %r1;\n"
      "bfi.b32 %r2, 5, 4294967295, 4, 8;\n"
      "st.global.u32 [%out+16], %r2;\n"
      "prmt.b32 %r3, 287454020, 1432778632, 8452;\n"
      "st.global.u32 [%out+20], %r3;\n"
      "mul.hi.s32 %r4, -3, 2;\n"
      "st.global.u32 [%out+24], %r4;\n"
      "bfind.shiftamt.u32 %r5, 1;\n"
      "st.global.u32 [%out+28], %r5;",
      {}, 8, Threads(1));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(outcome.words, ElementsAre(Bits(1.0f), Bits(0x1.000004p0f),
                                         0x7fffffffu, 0x3c00c000u, 0xfffff05fu,
                                         0x22334488u, 0xffffffffu, 31u));
}

TEST(PtxProgramTest, BarriersOrderWarps) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Launch launch = Threads(128, 512);
    launch.schedule_seed = seed;
    const Outcome outcome = RunBody(
        "mov.u32 %r1, dynamic;\n"
        "shl.b32 %r2, %t, 2;\n"
        "add.u32 %r3, %r1, %r2;\n"
        "st.shared.u32 [%r3], %t;\n"
        "bar.sync 0;\n"
        "sub.u32 %r4, 508, %r2;\n"
        "add.u32 %r4, %r4, %r1;\n"
        "ld.shared.u32 %r5, [%r4];\n"
        "st.global.u32 [%own_out], %r5;",
        {}, 128, launch);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(outcome.words[i], 127 - i);
  }
}

TEST(PtxProgramTest, MissingBarriersAreReportedWithLines) {
  const auto message = [](const std::string& body) {
    return std::string(
        RunBody(body, {}, 64, Threads(64, 512)).status.message());
  };
  const std::string begin =
      "mov.u32 %r1, dynamic;\nmad.lo.u32 %r1, %t, 4, %r1;\n"
      "xor.b32 %r2, %r1, 128;\n";
  const std::string store = "st.shared.u32 [%r1], %t;\n";
  const std::string load = "ld.shared.u32 %r3, [%r2];\n";
  const std::string barrier = "bar.sync 0;\n";
  EXPECT_EQ(message(begin + store + barrier + load), "");
  EXPECT_THAT(message(begin + store + load), HasSubstr("Line 18"));
  EXPECT_EQ(message(begin + store + barrier + load + barrier + store), "");
  EXPECT_THAT(message(begin + store + barrier + load + store),
              HasSubstr("Line 20 of the PTX, block (0, 0, 0), thread 0: no "
                        "barrier"));
}

constexpr char kBulkCopy[] =
    "mov.u32 %r1, dynamic;\n"
    "add.u32 %r2, %r1, 512;\n"
    "setp.ne.u32 %p1, %t, 0;\n"
    "@%p1 bra $filled;\n"
    "mbarrier.init.shared::cta.b64 [%r2], 1;\n"
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], "
    "[%in], 256, [%r2];\n"
    "$filled:\n"
    "bar.sync 0;\n";
constexpr char kReadCopied[] =
    "mad.lo.u32 %r3, %t, 4, %r1;\n"
    "ld.shared.u32 %r4, [%r3];\n"
    "st.global.u32 [%own_out], %r4;";

TEST(PtxProgramTest, BulkCopiesCompletePhases) {
  const std::string wait =
      "{\n.reg .pred done;\nagain:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%r2], 0;\n"
      "@!done bra again;\n}\n";
  Outcome outcome =
      RunBody(kBulkCopy + wait + kReadCopied, Iota(64), 64, Threads(64, 520));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.words, Iota(64));

  outcome = RunBody(std::string(kBulkCopy) + kReadCopied, Iota(64), 64,
                    Threads(64, 520));
  EXPECT_THAT(std::string(outcome.status.message()),
              HasSubstr("after that of a bulk copy"));
}

TEST(PtxProgramTest, CopiesOfThreadsArriveWhenWaitedFor) {
  const std::string begin =
      "mov.u32 %r1, dynamic;\n"
      "mad.lo.u32 %r1, %t, 4, %r1;\n"
      "cp.async.ca.shared.global [%r1], [%own_in], 4;\n"
      "cp.async.commit_group;\n";
  const std::string end =
      "ld.shared.u32 %r2, [%r1];\nst.global.u32 [%own_out], %r2;";
  Outcome outcome = RunBody(begin + "cp.async.wait_group 0;\n" + end, Iota(32),
                            32, Threads(32, 128));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.words, Iota(32));
  outcome = RunBody(begin + "cp.async.wait_group 1;\n" + end, Iota(32), 32,
                    Threads(32, 128));
  EXPECT_NE(outcome.words, Iota(32));
}

// A barrier that lanes arrive at with their copies.
TEST(PtxProgramTest, CopiesOfThreadsCompletePhases) {
  const std::string begin =
      "mov.u32 %r1, dynamic;\n"
      "add.u32 %r2, %r1, 512;\n"
      "mad.lo.u32 %r3, %t, 16, %r1;\n"
      "mul.wide.u32 %rd1, %t, 16; add.s64 %rd2, %in, %rd1;\n"
      "setp.ne.u32 %p1, %t, 0;\n"
      "@!%p1 mbarrier.init.shared::cta.b64 [%r2], 32;\n"
      "bar.sync 0;\n"
      "mov.u32 %r5, 16;\n"
      "@!%p1 mov.u32 %r5, 0;\n"
      "cp.async.cg.shared.global [%r3], [%rd2], 16, %r5;\n";
  const std::string arrive =
      "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r2];\n";
  const std::string end =
      "{\n.reg .pred done;\nagain:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%r2], 0;\n"
      "@!done bra again;\n}\n"
      "xor.b32 %r6, %t, 31; mad.lo.u32 %r6, %r6, 16, %r1;\n"
      "ld.shared.u32 %r4, [%r6];\nst.global.u32 [%own_out], %r4;";
  const Outcome outcome =
      RunBody(begin + arrive + end, Iota(128), 32, Threads(32, 520));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  for (uint32_t i = 0; i < 31; ++i) {
    EXPECT_EQ(outcome.words[i], (31 - i) * 4);
  }
  EXPECT_EQ(outcome.words[31], 0u) << "of which nothing was read";
}

TEST(PtxProgramTest, BlocksOfAClusterReadEachOther) {
  Launch launch = Threads(32, 128);
  launch.grid = {4, 1, 1};
  launch.cluster = {2, 1, 1};
  const Outcome outcome = RunBody(
      "mov.u32 %r1, dynamic;\n"
      "mov.u32 %r2, %cluster_ctarank;\n"
      "mov.u32 %r3, %ctaid.x;\n"
      "st.shared.u32 [%r1], %r3;\n"
      "barrier.cluster.arrive.release;\n"
      "barrier.cluster.wait.acquire;\n"
      "xor.b32 %r4, %r2, 1;\n"
      "mapa.shared::cluster.u32 %r5, %r1, %r4;\n"
      "ld.shared::cluster.u32 %r6, [%r5];\n"
      "barrier.cluster.arrive.release;\n"
      "barrier.cluster.wait.acquire;\n"
      "mul.wide.u32 %rd1, %r3, 4;\n"
      "add.s64 %rd2, %out, %rd1;\n"
      "st.global.u32 [%rd2], %r6;",
      {}, 4, launch);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(outcome.words, ElementsAre(1, 0, 3, 2));
}

Launch OverlappingThreads(uint32_t threads) {
  Launch launch = Threads(threads);
  launch.overlaps = true;
  return launch;
}

// Inputs may be read before.
TEST(PtxProgramTest, OverlappingLaunchesWaitForTheOneBefore) {
  const Outcome outcome = RunBody(
      "ld.global.u32 %r1, [%own_in];\n"
      "griddepcontrol.wait;\n"
      "ld.global.u32 %r2, [%own_out];\n"
      "griddepcontrol.launch_dependents;\n"
      "st.global.u32 [%own_out], %r1;",
      {7, 8}, 2, OverlappingThreads(2));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(outcome.words, ElementsAre(7, 8));
}

TEST(PtxProgramTest, EarlyReadsOfTheLaunchBeforeAreReported) {
  const Outcome outcome = RunBody(
      "ld.global.u32 %r1, [%own_out];\n"
      "griddepcontrol.wait;\n"
      "st.global.u32 [%own_out], %r1;",
      {}, 2, OverlappingThreads(2));
  EXPECT_THAT(std::string(outcome.status.message()),
              HasSubstr("Line 15 of the PTX, block (0, 0, 0), thread 0: reads "
                        "what the launch before has written"));
}

TEST(PtxProgramTest, EarlyWritesAreReported) {
  const Outcome outcome =
      RunBody("st.global.u32 [%own_out], %t;", {}, 2, OverlappingThreads(2));
  EXPECT_THAT(std::string(outcome.status.message()),
              HasSubstr("writes global memory and has not waited"));
}

TEST(PtxProgramTest, LettingTheNextBeginEarlyIsReported) {
  const Outcome outcome = RunBody(
      "griddepcontrol.launch_dependents;\n"
      "griddepcontrol.wait;",
      {}, 1, OverlappingThreads(2));
  EXPECT_THAT(std::string(outcome.status.message()),
              HasSubstr("lets the next launch begin and has not waited"));
}

TEST(PtxProgramTest, BlocksThatNeverWaitAreReported) {
  const Outcome outcome = RunBody("ld.global.u32 %r1, [%own_in];", {7, 8}, 1,
                                  OverlappingThreads(2));
  EXPECT_THAT(std::string(outcome.status.message()),
              HasSubstr("Block (0, 0, 0) ends and has not waited"));
}

// Blocks wait for a count that the last of them completes.
TEST(PtxProgramTest, BlocksWaitForEachOther) {
  constexpr char kMeet[] =
      "setp.ne.u32 %p1, %t, 0;\n"
      "@%p1 bra $end;\n"
      "atom.acq_rel.gpu.global.add.u32 %r1, [%out], 1;\n"
      "$again:\n"
      "ld.acquire.gpu.global.u32 %r2, [%out];\n"
      "setp.lt.u32 %p2, %r2, 3735928563;\n"  // four more than kUnwritten
      "@%p2 bra $again;\n"
      "$end:\n";
  Launch launch;
  launch.grid = {4, 1, 1};
  launch.resident_blocks = 4;
  EXPECT_TRUE(RunBody(kMeet, {}, 1, launch).status.ok());
  launch.resident_blocks = 3;
  EXPECT_THAT(std::string(RunBody(kMeet, {}, 1, launch).status.message()),
              HasSubstr("All threads wait for each other"));
}

TEST(PtxProgramTest, DeadlocksAreReportedWithLines) {
  const Outcome outcome = RunBody(
      "setp.ge.u32 %p1, %t, 32;\n"
      "@%p1 bra $second;\n"
      "bar.sync 1, 64;\n"
      "bra.uni $end;\n"
      "$second:\n"
      "bar.sync 2, 64;\n"
      "$end:",
      {}, 1, Threads(64));
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kInternal);
  const std::string message(outcome.status.message());
  EXPECT_THAT(message, HasSubstr("warp 0, lanes ffffffff: line 17"));
  EXPECT_THAT(message, HasSubstr("warp 1, lanes ffffffff: line 20"));
}

TEST(PtxProgramTest, AccessesOutsideAreReportedWithLines) {
  const auto message = [](const std::string& body) {
    return std::string(
        RunBody(body, Iota(4), 31, Threads(32, 64)).status.message());
  };
  EXPECT_THAT(message("st.global.u32 [%own_out], %t;"),
              HasSubstr("Line 15 of the PTX, block (0, 0, 0), thread 31"));
  EXPECT_THAT(message("ld.global.u32 %r1, [%in+2];"),
              HasSubstr("4 bytes of global memory"));
  EXPECT_THAT(message("st.global.u32 [%in], %t;"),
              HasSubstr("must not be written"));
  EXPECT_THAT(message("mov.u32 %r1, dynamic;\nld.shared.u32 %r2, [%r1+64];"),
              HasSubstr("Line 16 of the PTX"));
  EXPECT_THAT(message("ld.shared.u32 %r2, [%r0];"),
              HasSubstr("shared memory at 0x0 must not be read"));
}

// Of a register that is wider than the type the rest is left out.
TEST(PtxProgramTest, ConversionsTakeLowBits) {
  const Outcome outcome = RunBody(
      "mov.u64 %rd1, 0x7fffffff12348085;\ncvt.s64.s32 %rd2, %rd1;\n"
      "cvt.s32.s8 %r1, %rd1;\ncvt.u32.u64 %r2, %rd2;\n"
      "cvt.u32.u16 %r3, %rd1;\n"
      "st.global.u32 [%own_out], %r1;\nst.global.u32 [%own_out+4], %r2;\n"
      "st.global.u32 [%own_out+8], %r3;",
      {}, 3, Threads(1));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.words,
            (std::vector<uint32_t>{0xffffff85, 0x12348085, 0x8085}));
}

TEST(PtxProgramTest, UnknownTextIsRejectedWithItsLine) {
  EXPECT_THAT(
      std::string(RunBody("frobnicate.f32 %f1;", {}, 1).status.message()),
      HasSubstr("Line 15 of the PTX: unknown instruction in "
                "'frobnicate.f32'"));
  EXPECT_THAT(
      std::string(RunBody("add.s32 %rd1, %r1, %r2;", {}, 1).status.message()),
      HasSubstr("%rd1 has another width"));
  EXPECT_THAT(std::string(RunBody("bra $nowhere;", {}, 1).status.message()),
              HasSubstr("no label '$nowhere'"));
}

}  // namespace
}  // namespace kiln::ptx
