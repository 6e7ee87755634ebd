// Shapes and types against PyTorch's: each row was computed by the formulas of
// its documentation, page of the op named.
#include "jit/plan/infer.h"

#include <gtest/gtest.h>

#include "jit/plan/validate.h"
#include "tests/jit/plan/parse_plan.h"

namespace kiln {
namespace {

struct Row {
  std::string inputs;  // statements
  std::string call;
  std::string result;
};

void ExpectResults(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const Plan plan =
        MustParsePlan(row.inputs + "\ny = " + row.call + "\noutput y\n");
    const auto values = ValidatePlan(plan);
    ASSERT_TRUE(values.ok()) << row.call << ": " << values.status();
    EXPECT_EQ(ToString(values->back()), row.result)
        << row.inputs << " " << row.call;
    EXPECT_EQ(plan.outputs[0].dtype, values->back().dtype) << row.call;
  }
}

TEST(InferTest, Conv2d) {
  const std::string x = "input x: f32[2,8,16,15]\n";
  ExpectResults({
      {x + "param w: f32[6,8,3,3]", "conv2d(x, w)", "f32[2,6,14,13]"},
      {x + "param w: f32[6,8,3,3]", "conv2d(x, w, stride=2, padding=1)",
       "f32[2,6,8,8]"},
      {x + "param w: f32[6,8,3,2]",
       "conv2d(x, w, stride=[3,2], padding=[0,2], dilation=[2,1])",
       "f32[2,6,4,9]"},
      {x + "param w: f32[4,2,1,1]", "conv2d(x, w, groups=4)", "f32[2,4,16,15]"},
      {x + "param w: f32[8,1,16,15]", "conv2d(x, w, groups=8)", "f32[2,8,1,1]"},
  });
}

TEST(InferTest, ConvTranspose2d) {
  const std::string x = "input x: f32[2,8,5,4]\n";
  ExpectResults({
      {x + "param w: f32[8,6,3,3]", "conv_transpose2d(x, w)", "f32[2,6,7,6]"},
      {x + "param w: f32[8,6,3,3]",
       "conv_transpose2d(x, w, stride=2, padding=1, output_padding=1)",
       "f32[2,6,10,8]"},
      {x + "param w: f32[8,3,3,2]",
       "conv_transpose2d(x, w, stride=[1,3], dilation=[2,4], "
       "output_padding=[1,3], groups=4)",
       "f32[2,12,10,17]"},
  });
}

TEST(InferTest, Pooling) {
  const std::string x = "input x: f32[1,2,7,10]";
  ExpectResults({
      {x, "max_pool2d(x, kernel_size=2)", "f32[1,2,3,5]"},
      {x, "max_pool2d(x, kernel_size=2, ceil_mode=true)", "f32[1,2,4,5]"},
      {x, "max_pool2d(x, kernel_size=3, stride=2, padding=1)", "f32[1,2,4,5]"},
      {x, "max_pool2d(x, kernel_size=3, stride=2, padding=1, ceil_mode=true)",
       "f32[1,2,4,6]"},
      {x, "max_pool2d(x, kernel_size=[3,2], stride=1, dilation=[3,4])",
       "f32[1,2,1,6]"},
      {x, "avg_pool2d(x, kernel_size=[7,10])", "f32[1,2,1,1]"},
      {x, "avg_pool2d(x, kernel_size=4, stride=3, padding=2)", "f32[1,2,3,4]"},
  });
}

TEST(InferTest, LastCeilModeWindowStartsInsideInputOrLeftPadding) {
  ExpectResults({
      // (4 + 2 - 2 + 2) / 3 + 1 = 3 windows, but the third would start at 6.
      {"input x: f32[1,1,4,4]",
       "max_pool2d(x, kernel_size=2, stride=3, padding=1, ceil_mode=true)",
       "f32[1,1,2,2]"},
      {"input x: f32[1,1,3,3]",
       "max_pool2d(x, kernel_size=5, stride=4, ceil_mode=true)",
       "f32[1,1,1,1]"},
  });
}

TEST(InferTest, Norms) {
  ExpectResults({
      {"input x: f16[2,8,3,3]", "group_norm(x, num_groups=4)", "f16[2,8,3,3]"},
      {"input x: f32[2,8]", "group_norm(x, num_groups=8)", "f32[2,8]"},
      {"input x: f16[2,8,3]\nparam w: f32[8]\nparam b: f32[8]",
       "group_norm(x, w, b, num_groups=1)", "f16[2,8,3]"},
      {"input x: bf16[2,8]\nparam m: f32[8]\nparam v: f32[8]",
       "batch_norm(x, m, v)", "bf16[2,8]"},
      {"input x: f32[1,1]", "group_norm(x, num_groups=1)", "f32[1,1]"},
  });
}

TEST(InferTest, Reductions) {
  const std::string x = "input x: f16[2,3,5]";
  ExpectResults({
      {x, "sum(x)", "f16[]"},
      {x, "mean(x, dim=[])", "f16[]"},
      {x, "amax(x, dim=1)", "f16[2,5]"},
      {x, "max(x, dim=-1)", "f16[2,3]"},
      {x, "amin(x, dim=[0,-1], keepdim=true)", "f16[1,3,1]"},
      {x, "logsumexp(x, dim=(0,1,2), keepdim=True)", "f16[1,1,1]"},
      {"input x: f32[]", "sum(x, dim=-1)", "f32[]"},
      {"input x: f32[]", "softmax(x, dim=0)", "f32[]"},
      {x, "softmax(x, dim=-3)", "f16[2,3,5]"},
  });
}

TEST(InferTest, Broadcasting) {
  ExpectResults({
      {"input x: f32[2,3,4]\ninput z: f32[4]", "add(x, z)", "f32[2,3,4]"},
      {"input x: f32[3,1]\ninput z: f32[2,1,5]", "sub(x, z)", "f32[2,3,5]"},
      {"input x: f32[]\ninput z: f32[7]", "mul(x, z)", "f32[7]"},
      {"input x: f32[1,1,1,1]\ninput z: f32[]", "div(x, z)", "f32[1,1,1,1]"},
      {"input x: f16[3]", "maximum(x, 1e30)", "f16[3]"},
      {"input x: bf16[3]", "minimum(-inf, x)", "bf16[3]"},
  });
}

TEST(InferTest, TypePromotion) {
  ExpectResults({
      {"input x: f16[2]\ninput z: bf16[2]", "add(x, z)", "f32[2]"},
      {"input x: f16[2]\ninput z: f32[2]", "add(x, z)", "f32[2]"},
      {"input x: bf16[2]\ninput z: bf16[1]", "add(x, z)", "bf16[2]"},
      // A tensor of rank 0 does not promote one with dimensions.
      {"input x: f16[2]\ninput z: f32[]", "add(x, z)", "f16[2]"},
      {"input x: f32[]\ninput z: f16[1]", "add(x, z)", "f16[1]"},
      {"input x: f32[]\ninput z: f16[]", "add(x, z)", "f32[]"},
      {"input x: bf16[]\ninput z: f16[]", "add(x, z)", "f32[]"},
      {"input x: f16[1,1,1,1]\nparam w: f32[1,1,1,1]", "conv2d(x, w)",
       "f32[1,1,1,1]"},
      {"input x: f32[2]", "cast(x, dtype=bf16)", "bf16[2]"},
  });
}

TEST(InferTest, LargestExtentsDoNotOverflow) {
  ExpectResults({
      {"input x: f32[1,1,1,2147483647]\nparam w: f32[1,1,1,2147483647]",
       "conv2d(x, w, padding=[0,2147483647], stride=2147483647, "
       "dilation=[2147483647,1])",
       "f32[1,1,1,3]"},
      {"input x: f32[2147483647]", "sum(x)", "f32[]"},
  });
}

}  // namespace
}  // namespace kiln
