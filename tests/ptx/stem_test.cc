// Convolutions of few channels (stem_conv2d.cu): rows and channels that do not
// fill tiles, filters that do not fill steps, strides, dilation, rows that are
// no whole accesses, quads of several rows, operands that are split.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/ptx/conv_plan_text.h"
#include "tests/ptx/plan_testing.h"

namespace kiln::ptx {
namespace {

std::vector<std::string> Of16Bits() {
  return {
      Conv("2,3,21,32", "24,3,3,3", "padding=1", "y = relu(c)", "f16"),
      Conv("2,3,33,48", "40,3,3,3", "stride=2, padding=1", "y = silu(c)",
           "bf16"),
      Conv("1,4,30,33", "70,4,5,4", "stride=[2,1], padding=[0,1]",
           "y = gelu(c)", "f16"),
      Conv("2,2,19,42", "16,2,4,3", "padding=[1,2], dilation=[2,3]",
           "y = tanh(c)", "f16"),
      Conv("2,1,20,40", "12,1,3,3", "padding=1", "r = add(c, x)\ny = relu(r)",
           "f16"),
      Conv("1,3,17,73", "128,3,6,6", "stride=3, padding=[2,1]", "y = relu(c)",
           "bf16"),
      "input x: f16[1,3,18,76]\nparam w: f16[20,3,3,3]\nparam b: f16[20]\n"
      "c = conv2d(x, w, b, stride=3, padding=[9,11])\ny = silu(c)\noutput y\n",
  };
}

// Enough results for one multiprocessor (stem_tile.cc).
std::vector<std::string> OfF32() {
  const std::string split =
      Conv("1,1,64,128", "16,1,3,3", "padding=1", "y = relu(c)");
  return {split, "grade tf32\n" + split,
          "grade tf32\n" + Conv("1,3,64,128", "32,3,3,5",
                                "stride=[1,2], padding=[1,2]", "y = silu(c)")};
}

TEST(PtxStemTest, Of16BitsAgreesWithTheReference) {
  for (const std::string& text : Of16Bits()) {
    for (const char* const target : {"sm_90a/132", "sm_80/2"}) {
      SCOPED_TRACE(text + target);
      const PlanKernels kernels = Compiled(text, target);
      EXPECT_EQ(kernels.files, std::vector<std::string>{"stem_conv2d.cu"});
      ExpectAgreementWithSpecials(kernels, {}, {{}}, {{}, OffGrid()});
    }
  }
}

TEST(PtxStemTest, OfF32AgreesWithTheReference) {
  for (const std::string& text : OfF32()) {
    SCOPED_TRACE(text);
    const PlanKernels kernels = Compiled(text, "sm_90a/1");
    EXPECT_EQ(kernels.files, std::vector<std::string>{"stem_conv2d.cu"});
    ExpectAgreementWithSpecials(kernels, {}, {{}}, {{}, OffGrid()});
  }
}

}  // namespace
}  // namespace kiln::ptx
