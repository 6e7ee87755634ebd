#include "jit/compile/ptxas_log.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

constexpr char kLog[] =
    R"(ptxas info    : 65 bytes gmem, 136 bytes cmem[4]
ptxas info    : Compiling entry function 'kiln_reduce' for 'sm_75'
ptxas info    : Function properties for kiln_reduce
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers, 6144 bytes smem, 376 bytes cmem[0]
ptxas info    : Compiling entry function 'kiln_merge_splits' for 'sm_75'
ptxas info    : Function properties for kiln_merge_splits
ptxas         .     16 bytes stack frame, 12 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 255 registers, 376 bytes cmem[0]
)";

TEST(PtxasLogTest, ReadsTheLinesOfOneKernel) {
  EXPECT_EQ(FindKernelUsage(kLog, "kiln_reduce"), (KernelUsage{24, 0, 6144}));
  EXPECT_EQ(FindKernelUsage(kLog, "kiln_merge_splits"),
            (KernelUsage{255, 16, 0}));
}

TEST(PtxasLogTest, AKernelThatIsNotThereHasNoUsage) {
  EXPECT_EQ(FindKernelUsage(kLog, "kiln_conv2d"), std::nullopt);
  EXPECT_EQ(FindKernelUsage("", "kiln_reduce"), std::nullopt);
  EXPECT_EQ(
      FindKernelUsage("Compiling entry function 'kiln_reduce'", "kiln_reduce"),
      std::nullopt);
}

TEST(PtxasLogTest, ARefusalIsToldFromARejectedSource) {
  EXPECT_TRUE(
      IsRefused("ptxas application ptx input, line 233; fatal   : (C7406) "
                "setmaxnreg.dec has register count (88)\n"
                "ptxas fatal   : Ptx assembly aborted due to errors\n"));
  EXPECT_FALSE(IsRefused("kiln.cu(3): error: identifier \"x\" is undefined\n"));
}

}  // namespace
}  // namespace kiln
