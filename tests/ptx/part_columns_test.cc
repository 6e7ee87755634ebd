// Convolutions whose filters' columns are filters of their own
// (part_columns.h): weights of a column that lie apart, columns beyond a row,
// strides of rows, dilated columns, biases, several chunks.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/full_matrix.h"
#include "tests/ptx/conv_plan_text.h"
#include "tests/ptx/plan_testing.h"

namespace kiln::ptx {
namespace {

struct PartedPlan {
  std::string name;
  std::string text;
  bool has_grades = true;
};

std::vector<PartedPlan> PartedPlans() {
  const std::string biased =
      "input x: f32[1,16,40,41]\nparam w: f32[3,16,7,7]\nparam b: f32[3]\n"
      "c = conv2d(x, w, b, padding=3)\ny = tanh(c)\noutput y\n";
  return {
      {"biased", biased},
      {"several_chunks",
       Conv("1,72,36,28", "2,72,5,5", "padding=2", "y = relu(c)")},
      {"rows_apart",
       Conv("2,16,60,48", "3,16,7,7",
            "padding=[2,1], dilation=[1,2], stride=[2,1]", "y = mul(c, 2.0)")},
      {"one_result_without_padding",
       Conv("1,24,50,60", "1,24,9,9", "", "y = sigmoid(c)")},
      {"f16", Conv("1,32,40,40", "3,32,7,7", "padding=3", "y = tanh(c)", "f16"),
       false},
      {"bf16",
       Conv("1,20,40,52", "3,20,5,9", "padding=[2,4]", "y = relu(c)", "bf16"),
       false},
  };
}

void ExpectParted(const std::string& text) {
  const PlanKernels kernels = Compiled(text, "sm_90a/1");
  const ConvGeometry* const conv = FirstConvolution(kernels);
  ASSERT_NE(conv, nullptr);
  EXPECT_GT(conv->problem.columns_apart, 1);
  ExpectAgreementWithSpecials(kernels, {}, {{}, Interrupted()}, {OffGrid()});
}

TEST(PtxPartColumnsTest, AgreeWithTheReference) {
  size_t turn = 0;
  for (const PartedPlan& plan : PartedPlans()) {
    SCOPED_TRACE(plan.name);
    if (!plan.has_grades) {
      ExpectParted(plan.text);
      continue;
    }
    for (const std::string& grade : GradesInTurn(turn++)) {
      SCOPED_TRACE(grade);
      ExpectParted("grade " + grade + "\n" + plan.text);
    }
  }
}

}  // namespace
}  // namespace kiln::ptx
