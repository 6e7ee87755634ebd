// Linear layers of few images (dense.cu): rows that are no whole accesses of 16
// bytes, fewer lanes than a warp has, images and results that do not fill the
// last part, operands of different types.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/ptx/conv_plan_text.h"
#include "tests/ptx/plan_testing.h"

namespace kiln::ptx {
namespace {

std::vector<std::string> LinearPlans() {
  const std::string mixed =
      "input x: f32[7,40,1,1]\nparam w: f16[21,40,1,1]\nparam b: f32[21]\n"
      "c = conv2d(x, w, b)\ny = sigmoid(c)\noutput y\n";
  return {
      Conv("32,672,1,1", "28,672,1,1", "", "y = silu(c)", "f16"),
      Conv("9,28,1,1", "130,28,1,1", "", "y = sigmoid(c)", "bf16"),
      Conv("5,100,1,1", "37,100,1,1", "", "y = relu(c)"),
      Conv("3,33,1,1", "10,33,1,1", "", "y = gelu(c)"),
      Conv("1,2048,1,1", "1000,2048,1,1", "", "y = relu(c)", "f16"),
      Conv("7,16,3,4", "9,16,3,4", "", "y = tanh(c)"),
      Conv("2,5,1,1", "3,5,1,1", "", "y = mul(c, 2.0)"),
      mixed,
  };
}

TEST(PtxDenseTest, AgreesWithTheReference) {
  for (const std::string& text : LinearPlans()) {
    for (const char* const target : {"sm_90a/132", "sm_75/2"}) {
      SCOPED_TRACE(text + target);
      ExpectAgreementWithSpecials(Compiled(text, target), {}, {{}},
                                  {{}, OffGrid()});
    }
  }
}

}  // namespace
}  // namespace kiln::ptx
