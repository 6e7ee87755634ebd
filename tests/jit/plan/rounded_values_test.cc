// Which values a plan rounds because a convolution takes them in 16 bits.
// Prevents that results depend on how a plan is cut into kernels.
#include "jit/plan/rounded_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "jit/plan/reference.h"
#include "jit/plan/validate.h"
#include "tests/jit/plan/parse_plan.h"

namespace kiln {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Names of the rounded values.
std::vector<std::string> Rounded(const std::string& text) {
  const Plan plan = MustParsePlan(text);
  const std::vector<bool> rounded = RoundedValues(plan, *ValidatePlan(plan));
  std::vector<std::string> names;
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    if (rounded[plan.inputs.size() + i]) names.push_back(plan.ops[i].name);
  }
  return names;
}

TEST(RoundedValuesTest, AreWhatConvolutionsTakeIn16Bits) {
  EXPECT_THAT(Rounded("input x: f16[1,8,9,9]\nparam w: f16[8,8,3,3]\n"
                      "r = relu(x)\nv = abs(w)\nc = conv2d(r, v)\n"
                      "t = tanh(c)\nd = conv_transpose2d(t, w)\n"
                      "y = silu(d)\noutput y\n"),
              ElementsAre("r", "v", "t"));
}

TEST(RoundedValuesTest, NeitherInputsNorCastsNorOtherTypes) {
  EXPECT_THAT(Rounded("input x: bf16[1,8,9,9]\nparam w: bf16[8,8,3,3]\n"
                      "e = exp(x)\nr = cast(e, dtype=bf16)\n"
                      "c = conv2d(r, w)\nd = conv2d(x, w)\ny = add(c, d)\n"
                      "output y\n"),
              IsEmpty());
  EXPECT_THAT(Rounded("input x: f16[1,8,9,9]\nparam w: f32[8,8,3,3]\n"
                      "r = relu(x)\nc = conv2d(r, w)\noutput c\n"),
              IsEmpty());
  EXPECT_THAT(Rounded("input x: f32[1,8,9,9]\nparam w: f32[8,8,3,3]\n"
                      "r = relu(x)\nc = conv2d(r, w)\noutput c\n"),
              IsEmpty());
}

// 1 + 2^-11 is halfway between two f16 numbers; ties go to even.
TEST(RoundedValuesTest, AreRoundedForAllThatReadThem) {
  const Plan plan = MustParsePlan(
      "input x: f16[1,1,1,1]\nparam w: f16[1,1,1,1]\n"
      "a = add(x, 0.00048828125)\nc = conv2d(a, w)\n"
      "y = sub(c, 1.0)\noutput y: f32\noutput a: f32\n");
  const uint16_t one = 0x3c00;
  const std::vector<const void*> inputs = {&one, &one};
  double y = -1.0;
  double a = -1.0;
  const std::vector<double*> outputs = {&y, &a};
  ASSERT_TRUE(EvaluateReferenceToDouble(plan, inputs, outputs).ok());
  EXPECT_EQ(y, 0.0);
  EXPECT_EQ(a, 1.0);
}

}  // namespace
}  // namespace kiln
