#include "jit/compile/compute_capability.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(ComputeCapabilityTest, IsTheNumberInTheArchitecture) {
  EXPECT_EQ(ComputeCapability({"sm_75", 40}), 75);
  EXPECT_EQ(ComputeCapability({"sm_90a", 132}), 90);
  EXPECT_EQ(ComputeCapability({"sm_103f", 148}), 103);
  EXPECT_EQ(ComputeCapability({"cpu", 0}), 0);
}

// A kernel that asks for more does not load.
TEST(ComputeCapabilityTest, SharedMemoryIsThatOfTheProgrammingGuide) {
  const auto kibibytes = [](const char* arch) {
    return MaxSharedBytes({arch, 100}) / 1024;
  };
  EXPECT_EQ(kibibytes("sm_75"), 64);
  for (const char* arch : {"sm_80", "sm_87"}) {
    EXPECT_EQ(kibibytes(arch), 163) << arch;
  }
  for (const char* arch : {"sm_86", "sm_89", "sm_120", "sm_121a"}) {
    EXPECT_EQ(kibibytes(arch), 99) << arch;
  }
  for (const char* arch :
       {"sm_90", "sm_90a", "sm_100", "sm_101a", "sm_103", "sm_110"}) {
    EXPECT_EQ(kibibytes(arch), 227) << arch;
  }
}

}  // namespace
}  // namespace kiln
