// Convolutions of 16-bit numbers with few results (head_conv2d.cu): chunks and
// rows that are not full, filters of even size, dilation, rows that end within
// a tile, tensors that do not begin with an access.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/ptx/conv_plan_text.h"
#include "tests/ptx/plan_testing.h"

namespace kiln::ptx {
namespace {

std::vector<std::string> Heads() {
  return {
      Conv("2,20,22,32", "3,20,3,3", "padding=1", "y = tanh(c)", "f16"),
      Conv("1,64,19,40", "1,64,3,3", "padding=[0,1]", "y = sigmoid(c)", "bf16"),
      Conv("2,24,20,80", "2,24,5,3", "padding=[2,11]", "y = relu(c)", "f16"),
      Conv("1,33,17,72", "4,33,2,4", "padding=[1,2], dilation=[2,4]",
           "y = silu(c)", "f16"),
      Conv("3,48,9,136", "5,48,3,3", "padding=1", "r = add(c, c)\ny = gelu(r)",
           "bf16"),
  };
}

TEST(PtxHeadTest, AgreesWithTheReference) {
  for (const std::string& text : Heads()) {
    SCOPED_TRACE(text);
    const PlanKernels kernels = Compiled(text, "sm_90a/1");
    EXPECT_EQ(kernels.files, std::vector<std::string>{"head_conv2d.cu"});
    ExpectAgreementWithSpecials(kernels, {}, {{}},
                                {{}, Interrupted(), OffGrid()});
  }
}

}  // namespace
}  // namespace kiln::ptx
