// What warps and blocks do together, on small programs written by hand.
// Prevents votes and reductions that leave out threads or keep what was before,
// and wrong fragments.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/ptx/program_testing.h"

namespace kiln::ptx {
namespace {

// The first 20 numbers have their highest bit set, and are the greatest.
TEST(PtxWarpOperationsTest, ReductionsAreOfTheLanesOfTheirMask) {
  const Outcome outcome = RunBody(
      "and.b32 %r1, %t, 1;\n"
      "setp.eq.u32 %p1, %r1, 0;\n"
      "selp.u32 %r2, 1431655765, 2863311530, %p1;\n"
      "sub.u32 %r3, %t, 20;\n"
      "redux.sync.max.u32 %r4, %r3, %r2;\n"
      "st.global.u32 [%own_out], %r4;",
      {}, 32, Threads(32));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  for (uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(outcome.words[i], i % 2 == 0 ? -2u : -1u) << i;
  }
}

// What 96 threads get of two votes: 1 if thread 70 says yes, and 2 more if the
// next one, in which none does, is taken for a yes.
std::vector<uint32_t> VotesOf(const std::string& vote) {
  const Outcome outcome = RunBody("setp.eq.u32 %p1, %t, 70;\n" + vote +
                                      "selp.u32 %r1, 1, 0, %p2;\n"
                                      "setp.eq.u32 %p1, %t, 96;\n" +
                                      vote +
                                      "selp.u32 %r2, 2, 0, %p2;\n"
                                      "add.u32 %r1, %r1, %r2;\n"
                                      "st.global.u32 [%own_out], %r1;",
                                  {}, 96, Threads(96));
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  return outcome.words;
}

// As NVRTC writes __syncthreads_or, and with a number of threads.
TEST(PtxWarpOperationsTest, BarriersTellAllWhetherAThreadVotes) {
  const std::vector<uint32_t> all(96, 1);
  EXPECT_EQ(VotesOf("bar.red.or.pred %p2, 0, %p1;\n"), all);
  EXPECT_EQ(VotesOf("barrier.cta.red.or.aligned.pred %p2, 1, 96, %p1;\n"), all);
}

// Number n of row r is 8 * r + n; lanes give the rows in reverse.
TEST(PtxWarpOperationsTest, MatricesAreOfTheRowsThatLanesName) {
  std::vector<uint32_t> input;
  for (uint32_t i = 0; i < 128; ++i) {
    input.push_back((2 * i + 1) << 16 | 2 * i);
  }
  const std::string begin =
      "mov.u32 %r1, dynamic;\n"
      "mad.lo.u32 %r2, %t, 16, %r1;\n"
      "mul.wide.u32 %rd1, %t, 16;\n"
      "add.s64 %rd2, %in, %rd1;\n"
      "add.s64 %rd3, %out, %rd1;\n"
      "ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd2];\n"
      "st.shared.v4.u32 [%r2], {%r3, %r4, %r5, %r6};\n"
      "xor.b32 %r2, %t, 31;\n"
      "mad.lo.u32 %r2, %r2, 16, %r1;\n";
  const std::string end = "st.global.v4.u32 [%rd3], {%r3, %r4, %r5, %r6};";
  const Outcome outcome =
      RunBody(begin +
                  "ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
                  "{%r3, %r4, %r5, %r6}, [%r2];\n" +
                  end,
              input, 128, Threads(32, 512));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  for (uint32_t i = 0; i < 128; ++i) {
    const uint32_t lane = i / 4;
    const uint32_t row = 31 - (i % 4 * 8 + lane / 4);
    EXPECT_EQ(outcome.words[i], input[row * 4 + lane % 4]) << i;
  }
}

}  // namespace
}  // namespace kiln::ptx
