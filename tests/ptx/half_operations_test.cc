// Arithmetic of pairs of f16 on numbers chosen by hand. Prevents results that
// are rounded twice, and halves that are mixed up.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/ptx/program_testing.h"

namespace kiln::ptx {
namespace {

constexpr uint16_t kLeast = 0x0001;  // 2^-24
constexpr uint16_t kMinusLeast = 0x8001;
constexpr uint16_t kOne = 0x3c00;
constexpr uint16_t kMinusOne = 0xbc00;
constexpr uint16_t kGreatest = 0x7bff;  // 65504
constexpr uint16_t kSixteen = 0x4c00;
constexpr uint16_t kMinusSixteen = 0xcc00;
constexpr uint16_t kInfinity = 0x7c00;
constexpr uint16_t kMinusInfinity = 0xfc00;
constexpr uint16_t kNan = 0x7fff;
constexpr uint16_t kMinusZero = 0x8000;

// Three operands, of which a difference has the first two, and the result.
using Case = std::array<uint16_t, 4>;

// A lane has its own case in the lower half, and the next one in the upper.
void CheckHalves(const std::string& instruction,
                 const std::vector<Case>& cases) {
  const auto both = [&](size_t lane, int operand) {
    const uint32_t upper = cases[(lane + 1) % cases.size()][operand];
    return upper << 16 | cases[lane][operand];
  };
  std::vector<uint32_t> input;
  for (size_t lane = 0; lane < cases.size(); ++lane) {
    for (int operand = 0; operand < 3; ++operand) {
      input.push_back(both(lane, operand));
    }
  }
  const Outcome outcome = RunBody(
      "mul.wide.u32 %rd1, %t, 12;\n"
      "add.s64 %rd2, %in, %rd1;\n"
      "ld.global.u32 %r1, [%rd2];\n"
      "ld.global.u32 %r2, [%rd2+4];\n"
      "ld.global.u32 %r3, [%rd2+8];\n" +
          instruction + "\nst.global.u32 [%own_out], %r4;",
      input, cases.size(), Threads(static_cast<uint32_t>(cases.size())));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  for (size_t lane = 0; lane < cases.size(); ++lane) {
    EXPECT_EQ(outcome.words[lane], both(lane, 3)) << lane;
  }
}

TEST(PtxHalfOperationsTest, DifferencesAreRoundedOnce) {
  CheckHalves("sub.f16x2 %r4, %r1, %r2;",
              {{0x4200, kOne, 0, 0x4000},                 // 3 - 1
               {kOne, kLeast, 0, kOne},                   // less than a tie
               {0x6800, kMinusOne, 0, 0x6800},            // 2049, a tie
               {0x6800, 0xc200, 0, 0x6802},               // 2051, a tie
               {kLeast, 0x0003, 0, 0x8002},               // denormals
               {kGreatest, kMinusSixteen, 0, kInfinity},  // 65520, a tie
               {kGreatest, kMinusOne, 0, kGreatest},
               {kOne, kOne, 0, 0},
               {kMinusZero, 0, 0, kMinusZero},
               {kOne, kInfinity, 0, kMinusInfinity},
               {kInfinity, kInfinity, 0, kNan},
               {0x7e01, kOne, 0, kNan}});
}

// 0x3556 is 683 / 2048 and 0x3094 is 293 / 2048: 3 and 7 times that lie halfway
// between two numbers, and f32 does not hold the sum that decides.
TEST(PtxHalfOperationsTest, ProductsAndSumsAreRoundedOnce) {
  CheckHalves("fma.rn.f16x2 %r4, %r1, %r2, %r3;",
              {{0x4200, 0x3556, 0, kOne},
               {0x4200, 0x3556, kLeast, 0x3c01},
               {0xc200, 0x3556, kMinusLeast, 0xbc01},
               {0x4700, 0x3094, 0, 0x3c02},
               {0x4700, 0x3094, kMinusLeast, 0x3c01},
               {0x4000, 0x4200, kOne, 0x4700},    // 2 * 3 + 1
               {0x5c00, 0x5c00, 0xfbff, 0x5000},  // 65536 - 65504
               {kLeast, 0x3800, 0, 0},            // halves of denormals, ties
               {kLeast, 0x3800, kLeast, 0x0002},
               {kGreatest, kOne, kSixteen, kInfinity},  // 65520, a tie
               {kGreatest, kOne, kOne, kGreatest},
               {kMinusOne, kOne, kOne, 0},
               {kMinusZero, kOne, kMinusZero, kMinusZero},
               {0, kInfinity, kOne, kNan},
               {kInfinity, kOne, kMinusInfinity, kNan},
               {kInfinity, kMinusOne, kOne, kMinusInfinity},
               {kOne, kOne, 0xfe01, kNan}});
}

}  // namespace
}  // namespace kiln::ptx
